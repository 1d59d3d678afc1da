"""Keeps one response once it is made, and names the items of its input."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client import Counter

from gateway.responses.items import PREFIXES, Item
from gateway.responses.records import Owner, ResponseRecords, StoredResponse
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Keeping:
    """A response that will be kept. ``began`` is what ``ResponseRecords.begin`` returned; ``lost`` counts by reason."""

    records: ResponseRecords
    owner: Owner
    began: str
    input: Sequence[Json]
    previous: str
    lost: Counter

    async def keep(self, response: Json) -> bool:
        """Keep the response; return whether it is kept. The answer reaches the client in any case."""
        stored = StoredResponse(response, tuple(self.input), self.previous)
        try:
            outcome = await self.records.keep(stored, self.owner, self.began)
        except DependencyError as error:
            _LOG.warning("a response was not kept: %s", error.message)
            outcome = "unavailable"
        if outcome != "kept":
            self.lost.labels(outcome).inc()
        return outcome == "kept"


def named_items(items: Iterable[Item], response_id: str) -> list[Json]:
    """Return the input's items as JSON, each with an id and a status."""
    digits = response_id.removeprefix("resp_")
    return [
        {"id": f"{PREFIXES[item.type]}_{digits}i{place:04x}", "status": "completed", **_shown(item)}
        for place, item in enumerate(items)
    ]


def _shown(item: Item) -> Json:
    fields = item.model_dump(mode="json", exclude_none=True)
    content = fields.get("content")
    if item.type == "message" and isinstance(content, str):
        kind = "output_text" if fields["role"] == "assistant" else "input_text"
        return {**fields, "content": [{"type": kind, "text": content}]}
    return fields
