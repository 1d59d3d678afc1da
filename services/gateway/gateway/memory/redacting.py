"""Redacts the texts of writes: turns, drafts, metadata, edits, imported lines, and the records of decisions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from pydantic import JsonValue, ValidationError

from gateway.policy import Redaction, redacted_json
from memloop.wire.errors import Unprocessable
from memloop.wire.feedback import MAX_REASON_CHARS, FeedbackRequest
from memloop.wire.fields import clean_name, pieces
from memloop.wire.memory import MAX_TEXT_CHARS, Buffer, ItemPatch, MemoryDraft, Source, StoreAdd, repeated_turn
from memloop.wire.memory_events import DecisionRecord
from memloop.wire.store_requests import MemoryLine, NumberedLine

_KEY_CHARS = 512
_WORDS: Final = ("reason", "reasoning", "query", "note", "reply")
"""The fields of a record that hold the model's words."""


def redacted_turns(turns: Sequence[Source], redact: Redaction) -> tuple[Source, ...]:
    """Return the turns redacted; one that marks make longer than a turn may be becomes several."""
    parts: list[Source] = []
    for turn in turns:
        name = clean_name(redact(turn.name)) if turn.name else None
        renamed = turn if name == turn.name else turn.model_copy(update={"name": name})
        split = [*pieces(redact(turn.content), name=name, most_chars=MAX_TEXT_CHARS)] or [""]
        parts += (
            renamed if piece == turn.content else renamed.model_copy(update={"content": piece}) for piece in split
        )
    return tuple(parts)


def redacted_metadata(metadata: dict[str, JsonValue], redact: Redaction) -> dict[str, JsonValue]:
    """Return the metadata with every text in it redacted; the names of its fields stay."""
    return cast("dict[str, JsonValue]", redacted_json(metadata, redact))


def chars_of(turns: Iterable[Source], metadata: Mapping[str, JsonValue]) -> int:
    """Return how many characters there are to redact in turns and metadata."""
    return sum(len(turn.said()) for turn in turns) + _chars_in(metadata)


def chars_of_add(add: StoreAdd) -> int:
    """Return how many characters there are to redact in an add."""
    drafts = sum(len(draft.key) + len(draft.value) + sum(map(len, draft.tags)) for draft in add.drafts)
    sources = (*add.sources, *(draft.source for draft in add.drafts if draft.source))
    return drafts + chars_of(sources, add.metadata)


def redacted_add(add: StoreAdd, redact: Redaction) -> StoreAdd:
    """Return the add with its drafts, sources and metadata redacted, without drafts of which nothing is left."""
    return add.model_copy(
        update={
            "drafts": tuple(draft for draft in (_draft(one, redact) for one in add.drafts) if draft.value),
            "sources": redacted_turns(add.sources, redact),
            "metadata": redacted_metadata(add.metadata, redact),
        }
    )


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


def redacted_feedback(request: FeedbackRequest, redact: Redaction) -> FeedbackRequest:
    """Return the verdict with its reason redacted, cut where marks make it too long."""
    return request.model_copy(update={"reason": _reason(request.reason, redact)})


def redacted_buffer(buffer: Buffer, redact: Redaction) -> Buffer:
    """Return the buffer with its turns redacted."""
    return buffer.model_copy(update={"turns": redacted_turns(buffer.turns, redact), "reason": redact(buffer.reason)})


def line_of(line: NumberedLine) -> MemoryLine | None:
    """Return the memory of an imported line; None for one that the store will refuse."""
    try:
        return MemoryLine.model_validate_json(line.text)
    except ValidationError:
        return None


def redacted_line(line: NumberedLine, memory: MemoryLine, redact: Redaction) -> NumberedLine:
    """Return the line with its memory redacted; the same line if that changes nothing."""
    before, item = redact.counts.total(), memory.item
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
            "feedback": (
                item.feedback and item.feedback.model_copy(update={"reason": _reason(item.feedback.reason, redact)})
            ),
        }
    )
    if redact.counts.total() == before:
        return line
    return line.model_copy(update={"text": memory.model_copy(update={"item": changed}).model_dump_json()})


def _chars_in(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_chars_in, cast("dict[str, object]", value).values()))
    return sum(map(_chars_in, cast("list[object]", value))) if isinstance(value, list) else 0


def _reason(reason: str | None, redact: Redaction) -> str | None:
    return None if reason is None else redact(reason)[:MAX_REASON_CHARS]


def _draft(draft: MemoryDraft, redact: Redaction) -> MemoryDraft:
    source = draft.source and redacted_turns((draft.source,), redact)[0]
    key, value = redact(draft.key)[:_KEY_CHARS], source.said() if source else redact(draft.value)[:MAX_TEXT_CHARS]
    changed = {"key": key or value[:_KEY_CHARS], "value": value, "tags": _tags(draft.tags, redact), "source": source}
    return draft.model_copy(update=changed)


def _tags(tags: Sequence[str], redact: Redaction) -> tuple[str, ...]:
    return tuple(filter(None, map(redact, tags)))


def redacted_records(records: Iterable[DecisionRecord], redact: Redaction) -> tuple[DecisionRecord, ...]:
    """Return the records with the model's own words redacted."""
    return tuple(
        record.model_copy(update={name: redact(text) for name in _WORDS if (text := getattr(record, name))})
        for record in records
    )
