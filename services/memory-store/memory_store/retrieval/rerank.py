"""Reorders the best candidates by a cross-encoder, if the operator configured one: none is shipped."""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from memloop.wire.errors import DependencyError
from memory_store.retrieval.candidates import Candidate


class PairScorer(Protocol):
    """A model that reads a question beside a text."""

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return for each text, 0 to 1, how well it answers; blocks."""
        ...


class RerankerMissing(RuntimeError):
    """The configured model could not be loaded; the message names the setting to change."""


class CrossEncoderScorer:
    """``PairScorer`` of sentence-transformers. Raises ``RerankerMissing`` for a missing model."""

    def __init__(self, model: str) -> None:
        os.environ.setdefault("TQDM_DISABLE", "1")
        import torch
        from sentence_transformers import CrossEncoder

        try:
            self._model = CrossEncoder(model, device="cpu", activation_fn=torch.nn.Sigmoid())
        except (OSError, ValueError) as error:
            raise RerankerMissing(
                f"MEMLOOP_RERANK_MODEL names {model}, which cannot be loaded. Give the folder of a cross-encoder, or a "
                "name that the hub or its cache has; without the variable nothing is reranked."
            ) from error

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the model's probability for each pair."""
        pairs = [(question, text) for text in texts]
        scores = self._model.predict(pairs, show_progress_bar=False)  # pyright: ignore[reportUnknownMemberType]
        return [float(score) for score in scores]


class Reranker:
    """Puts the best ``depth`` candidates in the order of a model, on one thread of its own."""

    def __init__(self, load: Callable[[], PairScorer], *, depth: int = 20) -> None:
        self._load = load
        self._depth = depth
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reranker")
        self._scorer: PairScorer | None = None

    async def start(self) -> None:
        """Load the model. Raises the error of loading it."""
        self._scorer = await asyncio.get_running_loop().run_in_executor(self._thread, self._load)

    def close(self) -> None:
        """Stop."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def reordered(self, question: str, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the judged candidates in the model's order, then the rest in theirs. Raises ``DependencyError``."""
        if self._scorer is None:
            raise DependencyError("the reranking model is not loaded")
        head, tail = list(candidates[: self._depth]), list(candidates[self._depth :])
        texts = [one.text for one in head]
        loop = asyncio.get_running_loop()
        try:
            scores = await loop.run_in_executor(self._thread, self._scorer.score, question, texts)
        except Exception as error:
            raise DependencyError(f"the reranking model failed: {type(error).__name__}") from error
        lift = max((one.score for one in tail), default=0.0)
        for one, score in zip(head, scores, strict=True):
            one.found["fused_score"] = one.score
            one.shares = {"rerank": lift + score}
        return sorted(head, key=lambda one: -one.score) + tail
