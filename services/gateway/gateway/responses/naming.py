"""Names the items of a request, and redacts items before they are stored."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, cast

import orjson

from gateway.policy import Keeper, Redaction, Redactions, redacted_json
from gateway.responses.items import PREFIXES, Item
from memloop.wire.chat import Json
from memloop.wire.memory import Scope

_SHORT_BYTES: Final = 4096
# fmt: off
_NO_TEXT: Final = frozenset((
    "id", "type", "object", "role", "status", "model", "call_id", "previous_response_id", "encrypted_content",
    "image_url", "file_id", "file_data", "file_url", "signature", "tools", "tool_choice", "memory",
))
# fmt: on


async def redacted(objects: Sequence[Json], keeper: Keeper, scope: Scope) -> list[Json]:
    """Return items, or responses, redacted as the user's policies ask. Raises Unavailable without them."""
    redactions = await keeper.redactions(scope.tenant, [scope])
    clean, redact = await redacted_by(redactions, objects, scope)
    redactions.counted(redact)
    return clean


async def redacted_by(redactions: Redactions, objects: Sequence[Json], scope: Scope) -> tuple[list[Json], Redaction]:
    """Return the same by these policies, and the redaction, whose counts are not yet added to the metrics."""
    redact = redactions.of(scope)
    if not redact.is_active:
        return [*objects], redact
    work = partial(redacted_json, [*objects], redact, skip=_NO_TEXT)
    here = redact.is_by_rules and _is_short(objects)
    clean = work() if here else await asyncio.to_thread(work)
    return cast("list[Json]", clean), redact


def _is_short(objects: Sequence[Json]) -> bool:
    """Return whether a thread would take longer than the rules do."""
    try:
        return len(orjson.dumps(objects)) <= _SHORT_BYTES
    except orjson.JSONEncodeError:  # nested too deeply
        return False


def named_items(items: Iterable[Item], digits: str) -> list[Json]:
    """Return items of an input as JSON, each with a status, and with an id of these digits if it has none."""
    found: list[Json] = []
    for place, item in enumerate(items):
        fields: Json = {"id": f"{PREFIXES[item.type]}_{digits}i{place:04x}", "status": "completed"}
        fields |= item.model_dump(mode="json", exclude_none=True)
        if item.type == "message" and isinstance(item.content, str):
            kind = "output_text" if item.role == "assistant" else "input_text"
            fields["content"] = [{"type": kind, "text": item.content}]
        found.append(fields)
    return found
