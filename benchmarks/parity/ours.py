"""Runs our loop, with the option ``parity``, on the same documents and the checkout's own prompts."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.parity.items import CHUNK_TOKENS, MAX_REREADS, Item, Project
from inference.profile_import.importing import import_prompts
from memloop.chunking import TokenizerSplitter
from memloop.loops.memagent import read_document
from memloop.loops.memreread import reread_document
from memloop.loops.parity import as_published
from memloop.profiles import Profile, profile_from_files, whole_profile
from memloop.wire.reading import ReadingOptions
from memloop_clients import EngineClient

_PARITY = ReadingOptions(parity=True)


def published_profile(project: Project, checkout: Path) -> Profile:
    """The checkout's prompts with the published numbers. Raises ImportRefused."""
    return as_published(profile_from_files(whole_profile(import_prompts(project, checkout).files())))


async def read_all(
    project: Project, items: Sequence[Item], *, splitter: TokenizerSplitter, profile: Profile, port: int
) -> None:
    """Read all items on the model at this port."""
    engine = EngineClient(f"http://127.0.0.1:{port}/v1", model="", dialect="vllm")
    try:
        for item in items:
            chunks = splitter.split(item.document, chunk_tokens=CHUNK_TOKENS)
            model = engine.of_model(item.name)
            if project == "memreread":
                await reread_document(
                    item.question, chunks, model=model, profile=profile, max_rereads=MAX_REREADS, options=_PARITY
                )
            else:
                await read_document(item.question, chunks, model=model, profile=profile, options=_PARITY)
    finally:
        await engine.close()
