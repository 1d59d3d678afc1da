"""Endpoints of single-purpose models: texts to vectors, and a question beside texts to scores.

Sources: OpenAI API reference, "Create embeddings"; Cohere API reference, "Rerank" (v1 and v2), whose request and answer
Jina, vLLM and others share.
"""

import asyncio
import math
import ssl
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import orjson
from pydantic import FiniteFloat, JsonValue, ValidationError

from memloop.wire.base import OpenWire
from memloop.wire.errors import DependencyError, MemloopError, Timeout, Unavailable
from memloop_clients.endpoints import ANY, endpoint_at
from memloop_clients.http import Http, retry_after
from memloop_clients.refusals import Fault
from memloop_clients.transport import Timeouts
from memloop_clients.urls import proxy_for

_MESSAGE_CHARS: Final = 500
_MOST_BYTES: Final = 64 * 1024 * 1024
_PASSING: Final = frozenset({408, 409, 425, 429})
_OF_THE_INPUT: Final = frozenset({400, 413, 422})


class InputRefused(DependencyError):
    """The endpoint runs and refuses this input, most often for its length."""


class _Row(OpenWire):
    index: int | None = None
    embedding: list[float]


class _Embeddings(OpenWire):
    data: list[_Row]


class _Scored(OpenWire):
    index: int
    relevance_score: FiniteFloat


class _Ranking(OpenWire):
    results: list[_Scored]


_Answer = TypeVar("_Answer", bound=OpenWire)


class _ModelClient(Http):
    """``base_url`` ends where the route's name begins, as in ``https://host/v1``.

    The proxy that the environment names for the URL is read here, once. Raises ValueError for a proxy that is not an
    ``http://`` one.
    """

    def __init__(
        self,
        base_url: str,
        *,
        peer: str,
        model: str,
        api_key: str | None,
        timeouts: Timeouts,
        tls: ssl.SSLContext | None,
    ) -> None:
        kind = endpoint_at(base_url) or ANY
        super().__init__(
            kind.base_url(base_url),
            peer=peer,
            error_of=self._error,
            headers=kind.headers(api_key),
            timeouts=timeouts,
            proxy_of=proxy_for,
            tls=tls,
        )
        self._model = model

    async def _post(
        self, path: str, fields: Mapping[str, JsonValue], answer: type[_Answer], *, within_s: float
    ) -> _Answer:
        """Raises Unavailable, Timeout, InputRefused, DependencyError."""
        body = orjson.dumps({"model": self._model, **fields})
        try:
            async with asyncio.timeout(within_s), self.open("POST", path, body=body) as response:
                await response.check()
                raw = bytearray()
                while chunk := await response.some():
                    raw += chunk
                    if len(raw) > _MOST_BYTES:
                        raise DependencyError(f"the {self.peer}'s answer is too long")
        except TimeoutError as error:
            raise Timeout(f"the {self.peer} did not answer in time") from error
        try:
            return answer.model_validate_json(bytes(raw))
        except ValidationError as error:
            raise DependencyError(f"the {self.peer}'s answer does not have the expected form") from error

    def _error(self, status: int, raw: bytes, headers: Mapping[str, str]) -> MemloopError:
        message = f"the {self.peer} answered {status}: {Fault.of(raw).message[:_MESSAGE_CHARS]}"
        if status == 504:
            return Timeout(message)
        if status >= 500 or status in _PASSING:
            return Unavailable(message, retry_after_s=retry_after(headers))
        return InputRefused(message) if status in _OF_THE_INPUT else DependencyError(message)


class EmbeddingsClient(_ModelClient):
    """An OpenAI-compatible ``/embeddings`` route. ``dimensions`` asks for shorter vectors, where the model can."""

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        api_key: str | None,
        timeouts: Timeouts,
        dimensions: int | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(base_url, peer="embedding endpoint", model=model, api_key=api_key, timeouts=timeouts, tls=tls)
        self._more: dict[str, JsonValue] = {} if dimensions is None else {"dimensions": dimensions}

    async def vectors(self, texts: Sequence[str], *, within_s: float) -> list[tuple[float, ...]]:
        """Return one unit vector per text, in the order of the texts whatever the order of the answer.

        Raises InputRefused, Unavailable, Timeout, and DependencyError for an answer that does not fit the texts.
        """
        fields: dict[str, JsonValue] = {"input": list[JsonValue](texts), "encoding_format": "float", **self._more}
        rows = (await self._post("embeddings", fields, _Embeddings, within_s=within_s)).data
        placed = {at if row.index is None else row.index: row.embedding for at, row in enumerate(rows)}
        if len(rows) != len(texts) or placed.keys() != set(range(len(texts))):
            raise DependencyError(f"the embedding endpoint answered {len(texts)} texts with {len(rows)} vectors")
        return [_unit(placed[at]) for at in range(len(texts))]


class RerankClient(_ModelClient):
    """A ``/rerank`` route in the form of Cohere, Jina and vLLM."""

    def __init__(
        self, base_url: str, *, model: str, api_key: str | None, timeouts: Timeouts, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(base_url, peer="reranking endpoint", model=model, api_key=api_key, timeouts=timeouts, tls=tls)

    async def scores(self, question: str, texts: Sequence[str], *, within_s: float) -> dict[int, float]:
        """Return the scores of the texts by their place; the endpoint may leave out some.

        Raises InputRefused, Unavailable, Timeout, and DependencyError for an answer that does not fit the texts.
        """
        fields: dict[str, JsonValue] = {"query": question, "documents": list[JsonValue](texts), "top_n": len(texts)}
        results = (await self._post("rerank", fields, _Ranking, within_s=within_s)).results
        scores = {one.index: one.relevance_score for one in results}
        if len(scores) != len(results) or not scores.keys() <= set(range(len(texts))):
            raise DependencyError("the reranking endpoint named a text that it was not asked about, or one twice")
        return scores


def _unit(vector: Sequence[float]) -> tuple[float, ...]:
    length = math.hypot(*vector)
    if not 0.0 < length < math.inf:
        raise DependencyError("the embedding endpoint answered with a vector without a direction")
    return tuple(value / length for value in vector)
