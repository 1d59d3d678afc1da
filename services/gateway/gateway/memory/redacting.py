"""Redacts the texts of edits, feedback and imported lines."""

from collections.abc import Sequence

from pydantic import ValidationError

from gateway.policy import Redaction, redacted_metadata, redacted_turns
from memloop.wire.errors import Unprocessable
from memloop.wire.feedback import MAX_REASON_CHARS
from memloop.wire.memory import MAX_TEXT_CHARS, ItemPatch, repeated_turn
from memloop.wire.store_requests import MemoryLine, NumberedLine

_KEY_CHARS = 512


def redacted_patch(patch: ItemPatch, redact: Redaction) -> ItemPatch:
    """Return the edit redacted. Raises Unprocessable when its text becomes too long."""
    changed: dict[str, object] = {}
    if patch.memory is not None:
        clean = redact(patch.memory)
        if not clean:
            raise Unprocessable("A memory policy never keeps this text.", param="memory", code="not_kept")
        if len(clean) > MAX_TEXT_CHARS:
            raise Unprocessable(
                f"The text is longer than {MAX_TEXT_CHARS} characters once it is redacted.", param="memory"
            )
        changed["memory"] = clean
    if patch.metadata is not None:
        changed["metadata"] = redacted_metadata(patch.metadata, redact)
    if patch.tags is not None:
        changed["tags"] = _tags(patch.tags, redact)
    return patch.model_copy(update=changed)


def line_of(line: NumberedLine) -> MemoryLine | None:
    """Return the memory of an imported line; None for one that the store will refuse."""
    try:
        return MemoryLine.model_validate_json(line.text)
    except ValidationError:
        return None


def redacted_line(line: NumberedLine, memory: MemoryLine, redact: Redaction) -> NumberedLine:
    """Return the line with its memory redacted; the same line if that changes nothing."""
    before, item, given = redact.counts.total(), memory.item, memory.item.feedback
    sources = redacted_turns(item.sources, redact)
    value = sources[0].said() if repeated_turn(item.memory, item.sources) else redact(item.memory)[:MAX_TEXT_CHARS]
    changed = item.model_copy(
        update={
            "memory": value,
            "key": redact(item.key) or value[:_KEY_CHARS],
            "tags": _tags(item.tags, redact),
            "metadata": redacted_metadata(item.metadata, redact),
            "sources": sources,
            "times": tuple(one.model_copy(update={"text": redact(one.text)[:256]}) for one in item.times),
            "feedback": given and given.model_copy(update={"reason": redacted_reason(given.reason, redact)}),
        }
    )
    if redact.counts.total() == before:
        return line
    return line.model_copy(update={"text": memory.model_copy(update={"item": changed}).model_dump_json()})


def redacted_reason(reason: str | None, redact: Redaction) -> str | None:
    """Return a verdict's reason redacted, cut where marks make it too long."""
    return None if reason is None else redact(reason)[:MAX_REASON_CHARS]


def _tags(tags: Sequence[str], redact: Redaction) -> tuple[str, ...]:
    return tuple(filter(None, map(redact, tags)))
