"""MemReread on any endpoint of OpenAI's chat completions, without a stack: the loop that the gateway runs.

``async with MemReread(tokenizer_model="Qwen/Qwen3-4B", model=name, base_url=url, api_key=key) as reader`` opens one;
``await reader(question="Where is the seal?", context=text)`` returns the answer with its memory and cost.
"""

import asyncio
from pathlib import Path
from typing import Final

from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.loops.memreread import reread_document
from memloop.loops.parity import as_published
from memloop.loops.results import ReadResult
from memloop.loops.steps import ReadStep
from memloop.ports import Report, Splitter, discard
from memloop.profiles import load_profile
from memloop.wire.errors import InvalidRequest
from memloop.wire.reading import ReadingOptions
from memloop_clients.engine import EngineClient

PUBLISHED_REREADS: Final = 3
"""The rereads of MemReread's quick start and of its evaluation."""


class MemReread:
    """Reads a document for a question, rereads it for missing facts, and answers.

    ``tokenizer_model`` is a hub id, or a folder or file with the model's ``tokenizer.json``; without one, tokens are
    estimated, and chunks are smaller than necessary. With ``max_reread=0`` the loop is MemAgent's. ``profile`` holds
    the prompts: a published checkpoint's own come from ``memloop-inference profile import``. ``parity`` reads exactly
    as published. Raises ProfileError, InvalidRequest for a tokenizer that cannot be had, ValueError for a wrong URL.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        api_key: str | None = None,
        tokenizer_model: str | Path | None = None,
        max_reread: int = PUBLISHED_REREADS,
        max_chunk: int | None = None,
        profile: str | Path = "default",
        parity: bool = False,
    ) -> None:
        loaded = load_profile(profile)
        self._profile = as_published(loaded) if parity else loaded
        self._options = ReadingOptions(parity=parity)
        self._splitter = EstimatingSplitter() if tokenizer_model is None else splitter_of(tokenizer_model)
        self._chunk_tokens = max_chunk or self._profile.budget.chunk_tokens
        self._max_rereads = max_reread
        self._engine = EngineClient(base_url, model=model, api_key=api_key)

    async def __call__(self, question: str, context: str, *, report: Report[ReadStep] = discard) -> ReadResult:
        """Read the document and answer. Raises InvalidRequest for an empty one, and the endpoint's errors."""
        chunks = await asyncio.to_thread(self._splitter.split, context, chunk_tokens=self._chunk_tokens)
        return await reread_document(
            question,
            chunks,
            model=self._engine,
            profile=self._profile,
            max_rereads=self._max_rereads,
            options=self._options,
            report=report,
        )

    async def close(self) -> None:
        await self._engine.close()

    async def __aenter__(self) -> "MemReread":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def splitter_of(tokenizer_model: str | Path) -> Splitter:
    """Return the splitter of a hub id, or of a folder or file with ``tokenizer.json``. Raises InvalidRequest."""
    from tokenizers import Tokenizer  # late, as in TokenizerSplitter

    path = Path(tokenizer_model)
    try:
        if path.exists():
            return TokenizerSplitter((path / "tokenizer.json" if path.is_dir() else path).read_bytes())
        return TokenizerSplitter(Tokenizer.from_pretrained(str(tokenizer_model)).to_str())
    except Exception as error:  # the library raises Exception itself, for the hub's faults and for broken files
        raise InvalidRequest(f"no tokenizer at {tokenizer_model}: {error}", code="no_tokenizer") from error
