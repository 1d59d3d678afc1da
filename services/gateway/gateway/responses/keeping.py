"""Keeps one response once it is made, and names the items of its input."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from prometheus_client import Counter

from gateway.policy import Keeper, Redaction, redacted_json
from gateway.responses.items import PREFIXES, Item
from gateway.responses.records import Owner, ResponseRecords, StoredResponse
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError
from memloop.wire.memory import Scope

_LOG = logging.getLogger(__name__)
# fmt: off
_NO_TEXT: Final = frozenset((
    "id", "type", "object", "role", "status", "model", "call_id", "previous_response_id", "encrypted_content",
    "image_url", "file_id", "file_data", "file_url", "signature", "tools", "tool_choice", "memory",
))
# fmt: on


@dataclass(frozen=True, slots=True)
class Keeping:
    """A response that will be kept. ``began`` is what ``ResponseRecords.begin`` returned; ``lost`` counts by reason."""

    records: ResponseRecords
    owner: Owner
    began: str
    input: Sequence[Json]
    previous: str
    lost: Counter
    keeper: Keeper

    async def keep(self, response: Json) -> bool:
        """Keep the response, redacted as the user's policies ask; return whether it is kept.

        The answer reaches the client in any case, and unchanged.
        """
        try:
            stored = await self._redacted(StoredResponse(response, tuple(self.input), self.previous))
            outcome = await self.records.keep(stored, self.owner, self.began)
        except DependencyError as error:
            _LOG.warning("a response was not kept: %s", error.message)
            outcome = "unavailable"
        if outcome != "kept":
            self.lost.labels(outcome).inc()
        return outcome == "kept"

    async def _redacted(self, stored: StoredResponse) -> StoredResponse:
        scope = self.owner.namespace or Scope(tenant=self.owner.tenant)
        redactions = await self.keeper.redactions(scope.tenant, [scope])
        redact = redactions.of(scope)
        clean = await asyncio.to_thread(_redacted, stored, redact) if redact.kinds else stored
        redactions.counted(redact)
        return clean


def _redacted(stored: StoredResponse, redact: Redaction) -> StoredResponse:
    response = redacted_json(stored.response, redact, skip=_NO_TEXT)
    given = redacted_json(stored.input, redact, skip=_NO_TEXT)
    return StoredResponse(cast(Json, response), tuple(cast("list[Json]", given)), stored.previous)


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
