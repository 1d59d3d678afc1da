"""Reorders the best candidates by a cross-encoder, local or remote, if the operator configured one: none is shipped."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from memloop.wire.errors import DependencyError, Timeout
from memloop_clients.balancing.replica import Breaker
from memloop_clients.model_endpoint import RerankClient
from memory_store.retrieval.relevance import Candidate

_RRF: Final = 60
_MOST_CHARS: Final = 2_000


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
        try:
            import torch
            from sentence_transformers import CrossEncoder
        except ModuleNotFoundError as error:
            raise RerankerMissing(
                f"MEMLOOP_RERANK_MODEL names {model}, which needs {error.name}, and that is not installed: pip install "
                "'memloop-store[models]', or give endpoint:NAME and MEMLOOP_RERANK_URL"
            ) from error
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


class Scorer(Protocol):
    """A ``PairScorer`` somewhere else: on a thread, or behind HTTP."""

    async def start(self) -> None:
        """Make it ready. Raises the error of doing so."""
        ...

    async def scores(self, question: str, texts: Sequence[str], *, within_s: float) -> Mapping[int, float]:
        """Return the scores of the texts by their place, higher is better; some may be missing.

        Raises ``DependencyError``, and ``Timeout`` after ``within_s``.
        """
        ...

    async def close(self) -> None: ...


class ThreadScorer:
    """``Scorer`` of a model that runs on one thread of its own. A call that waits too long never begins."""

    def __init__(self, load: Callable[[], PairScorer]) -> None:
        self._load = load
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reranker")
        self._model: PairScorer | None = None

    async def start(self) -> None:
        self._model = await asyncio.get_running_loop().run_in_executor(self._thread, self._load)

    async def scores(self, question: str, texts: Sequence[str], *, within_s: float) -> Mapping[int, float]:
        if self._model is None:
            raise DependencyError("the reranking model is not loaded")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(within_s):
                scores = await loop.run_in_executor(self._thread, self._model.score, question, texts)
        except TimeoutError as error:
            raise Timeout("the reranking model did not answer in time") from error
        except Exception as error:
            raise DependencyError(f"the reranking model failed: {type(error).__name__}") from error
        return dict(enumerate(scores))

    async def close(self) -> None:
        """Stop once the running call has ended."""
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)


class EndpointScorer:
    """``Scorer`` of a remote model behind a circuit breaker. Long texts are cut, the question as well."""

    def __init__(self, endpoint: RerankClient, breaker: Breaker) -> None:
        self._endpoint = endpoint
        self._breaker = breaker

    async def start(self) -> None:
        """Do nothing: searches go on without the endpoint."""

    async def scores(self, question: str, texts: Sequence[str], *, within_s: float) -> Mapping[int, float]:
        async def probe() -> None:
            await self._endpoint.scores("Where?", ["Here."], within_s=within_s)

        await self._breaker.admit(probe)
        cut = [text[:_MOST_CHARS] for text in texts]
        with self._breaker.watching():
            return await self._endpoint.scores(question[:_MOST_CHARS], cut, within_s=within_s)

    async def close(self) -> None:
        await self._endpoint.close()


class Reranker:
    """Fuses the order of the best ``depth`` candidates with the order in which a model puts them.

    The model has ``budget_s`` seconds. Source of the fusion: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion
    outperforms Condorcet and individual Rank Learning Methods", 2009.
    """

    def __init__(self, scorer: Scorer, *, depth: int = 20, budget_s: float = 1.0) -> None:
        self._scorer = scorer
        self._depth = depth
        self._budget_s = budget_s

    async def start(self) -> None:
        await self._scorer.start()

    async def close(self) -> None:
        await self._scorer.close()

    async def reordered(self, question: str, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the judged candidates in the fused order, then the rest in theirs.

        The judged ones exchange their scores, so that scores still fall and keep their scale. Raises
        ``DependencyError``, and leaves the candidates as they were.
        """
        head, tail = list(candidates[: self._depth]), list(candidates[self._depth :])
        scores = await self._scorer.scores(question, [one.text for one in head], within_s=self._budget_s)
        judged = {at: rank for rank, at in enumerate(sorted(scores, key=lambda at: (-scores[at], at)), 1)}
        # The sum of 1 / (60 + rank) over both orders; the first order breaks ties
        fused = [1 / (_RRF + at + 1) + (1 / (_RRF + judged[at]) if at in judged else 0.0) for at in range(len(head))]
        order = sorted(range(len(head)), key=lambda at: (-fused[at], at))
        values = [one.score for one in head]
        for at, value in zip(order, values, strict=True):
            one = head[at]
            one.found |= {"fused_score": one.score}
            if at in scores:
                one.found |= {"rerank_score": scores[at]}
            one.shares["rerank"] = value - one.score
        return [head[at] for at in order] + tail
