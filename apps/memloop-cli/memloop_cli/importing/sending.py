"""Sends what was read: facts and raw turns as versions with stable ids, or turns to the memory writer.

A version that the gateway has already stays as it is, and a write has a name that makes it happen once; so an import
that is repeated, or goes on after a kill, stores nothing twice.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import JsonValue, ValidationError

from memloop.wire.errors import (
    Conflict,
    DependencyError,
    InvalidRequest,
    MemloopError,
    RateLimited,
    TooLarge,
    Unprocessable,
)
from memloop.wire.fields import clean_name, pieces
from memloop.wire.memory import MAX_TEXT_CHARS, MemoryItem, Source
from memloop.wire.memory_events import MemoryEvent
from memloop.wire.memory_requests import MemoryAdd
from memloop.wire.store_requests import MAX_LINES, MemoryLine
from memloop_cli.importing.counts import Counts
from memloop_cli.importing.entries import Conversation, Entry, Fact, Turn, Whose, stable_id
from memloop_clients import GatewayClient

_BATCH_BYTES: Final = 4 << 20
_TURNS_OF_A_WRITE: Final = 40
_WRITE_CHARS: Final = 1 << 20
_WRITES_AT_ONCE: Final = 8
_WRITE_WAIT_S: Final = 900.0
_ATTEMPTS: Final = 6
_FIRST_PAUSE_S: Final = 0.5
_REFUSED: Final = (InvalidRequest, Unprocessable, TooLarge, Conflict)
_TITLE_CHARS: Final = 200
_ID_CHARS: Final = 256
_KEY_CHARS: Final = 512
_Result = TypeVar("_Result")


class DoneNotes:
    """Keys of records that the gateway has taken, in a file: a killed import goes on without sending them again.

    Lines are appended, so that a kill loses the last one at most.
    """

    def __init__(self, file: Path, *, empty: bool = False) -> None:
        self._file = file
        there = file.is_file() and not empty
        self._done = frozenset(file.read_text(encoding="ascii").split()) if there else frozenset[str]()

    def __contains__(self, key: str) -> bool:
        return key in self._done

    def note(self, keys: Iterable[str]) -> None:
        """Append keys. An earlier run's keys stay."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="ascii") as file:
            file.writelines(f"{key}\n" for key in keys)


@dataclass(frozen=True, slots=True)
class Target:
    """Where an import goes: ``kind`` is its format; ``user`` the user of what names none, or of all if ``forced``."""

    kind: str
    user: str
    forced: bool
    infer: bool

    def whose(self, named: Whose) -> Whose:
        """Return the ids under which a record is stored."""
        user = self.user if self.forced or named.user_id is None else named.user_id
        return Whose(user, named.agent_id, named.run_id)

    def key(self, entry: Entry) -> str:
        """Return a key of the entry's content."""
        whose = self.whose(entry.whose)
        texts = (entry.text,) if isinstance(entry, Fact) else tuple(turn.content for turn in entry.turns)
        mode = "writer" if self.infer else "raw"
        return stable_id(self.kind, mode, whose.user_id or "", entry.id, *texts).replace("-", "")


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    raw: bytes
    ends: str | None
    """The key of the entry whose last line it is."""


@dataclass(frozen=True, slots=True)
class _Write:
    number: int
    turns: int
    event_id: str
    ends: str | None


class Sender:
    """Sends entries, counts, and notes what is done. Raises the gateway's errors that concern more than one record."""

    def __init__(self, client: GatewayClient, target: Target, counts: Counts, done: DoneNotes) -> None:
        self._client = client
        self._target = target
        self._counts = counts
        self._done = done
        self._lines: list[_Line] = []
        self._bytes = 0
        self._writes: deque[_Write] = deque()
        self._failed_keys: set[str] = set()
        self._retried: set[str] = set()
        self._began = datetime.now(UTC)

    async def send(self, number: int, entry: Entry) -> None:
        """Send an entry; its outcome may be counted later."""
        key = self._target.key(entry)
        if key in self._done:
            self._counts.ignored += 1 if isinstance(entry, Fact) else len(entry.turns)
        elif isinstance(entry, Conversation) and self._target.infer:
            await self._write(number, entry, key)
        else:
            await self._take(number, entry, key)

    async def close(self) -> None:
        """Send the remaining lines and wait for the outcomes."""
        await self._flush()
        while self._writes:
            await self._settle(self._writes.popleft())

    async def _take(self, number: int, entry: Entry, key: str) -> None:
        lines = list(_lines(entry, self._target))
        for place, line in enumerate(lines, start=1):
            raw = line.model_dump_json().encode()
            self._lines.append(_Line(number, raw, key if place == len(lines) else None))
            self._bytes += len(raw)
            if len(self._lines) == MAX_LINES or self._bytes >= _BATCH_BYTES:
                await self._flush()

    async def _flush(self) -> None:
        lines, self._lines, self._bytes = self._lines, [], 0
        if not lines:
            return
        body = b"\n".join(line.raw for line in lines)
        result = await _patiently(lambda: self._client.import_lines(body))
        self._counts.kept += result.imported
        self._counts.ignored += result.unchanged
        failed = {lines[error.line - 1].number for error in result.errors}
        for error in result.errors:
            self._counts.fail(lines[error.line - 1].number, error.message)
        self._counts.failed += result.failed - len(result.errors)
        self._done.note(line.ends for line in lines if line.ends is not None and line.number not in failed)

    async def _write(self, number: int, conversation: Conversation, key: str) -> None:
        parts = list(_parts(conversation))
        for place, turns in enumerate(parts, start=1):
            request = _add(conversation, turns, self._target)
            name = stable_id(key, str(place))
            try:
                event_id = await _patiently(lambda: self._client.add(request, name=name))  # noqa: B023 - awaited here
            except _REFUSED as error:
                self._counts.fail(number, error.message, count=len(turns))
                self._failed_keys.add(key)
                continue
            self._writes.append(_Write(number, len(turns), event_id, key if place == len(parts) else None))
            if len(self._writes) > _WRITES_AT_ONCE:
                await self._settle(self._writes.popleft())

    async def _settle(self, write: _Write) -> None:
        event = await _patiently(lambda: self._ended(write.event_id))
        if event.status == "failed":
            self._counts.fail(write.number, event.error or "the write failed", count=write.turns)
        elif event.memories:
            self._counts.kept += write.turns
        else:
            self._counts.ignored += write.turns
        if write.ends is not None and event.status != "failed" and write.ends not in self._failed_keys:
            self._done.note([write.ends])

    async def _ended(self, event_id: str) -> MemoryEvent:
        """Return the write's outcome. A write that failed in an earlier import is queued once more."""
        event = await self._client.event_ended(event_id, wait_s=_WRITE_WAIT_S)
        if event.status != "failed" or event.created_at >= self._began or event_id in self._retried:
            return event
        self._retried.add(event_id)
        await self._client.retry_event(event_id)
        return await self._client.event_ended(event_id, wait_s=_WRITE_WAIT_S)


async def _patiently(call: Callable[[], Awaitable[_Result]]) -> _Result:
    """Return the call's result; a gateway that is busy or away is asked again. Every call may be repeated."""
    pause_s = _FIRST_PAUSE_S
    for _ in range(_ATTEMPTS - 1):
        try:
            return await call()
        except (RateLimited, DependencyError) as error:
            await asyncio.sleep(min(error.retry_after_s or pause_s, 60.0))
            pause_s *= 2
    return await call()


def check(entry: Entry, target: Target) -> None:
    """Raise ValueError for an entry that the gateway would refuse for its form."""
    try:
        for _ in _lines(entry, target):
            pass
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except MemloopError as error:
        raise ValueError(error.message) from error


def _lines(entry: Entry, target: Target) -> Iterator[MemoryLine]:
    if isinstance(entry, Fact):
        for part, text in enumerate(_pieces(entry.text)):
            yield _line(
                entry,
                target,
                (entry.id, str(part)),
                memory=text,
                memory_type="LongTermMemory",
                key=text.strip()[:_KEY_CHARS],
                at=entry.at,
                tags=entry.tags,
                metadata={**entry.metadata, "imported_from": target.kind, "imported_id": entry.id[:_ID_CHARS]},
            )
        return
    for place, turn in enumerate(entry.turns):
        for part, source in enumerate(_sources(turn)):
            yield _line(
                entry,
                target,
                (entry.id, turn.id, str(place), str(part)),
                memory=source.said(),
                memory_type="RawTurn",
                at=source.timestamp,
                sources=(source,),
                metadata=_about(entry, target),
            )


def _line(
    entry: Entry,
    target: Target,
    place: Sequence[str],
    *,
    memory: str,
    memory_type: Literal["LongTermMemory", "RawTurn"],
    at: datetime | None,
    metadata: dict[str, JsonValue],
    key: str = "",
    tags: tuple[str, ...] = (),
    sources: tuple[Source, ...] = (),
) -> MemoryLine:
    """Return a version with an id of its place. Without a ``key`` it gets one of that id."""
    whose, now = target.whose(entry.whose), datetime.now(UTC)
    item_id = stable_id(target.kind, whose.user_id or "", whose.agent_id or "", whose.run_id or "", *place)
    item = MemoryItem(
        id=item_id,
        memory=memory,
        key=key or f"{target.kind}:{item_id}",
        memory_type=memory_type,
        tags=tags,
        user_id=whose.user_id or "",
        agent_id=whose.agent_id,
        run_id=whose.run_id,
        metadata=metadata,
        valid_from=at or now,
        created_at=now,
        updated_at=now,
        sources=sources,
        hash="",
    )
    return MemoryLine(item=item, confirmed_at=at or now)


def _about(conversation: Conversation, target: Target) -> dict[str, JsonValue]:
    about: dict[str, JsonValue] = {"imported_from": target.kind, "conversation_id": conversation.id[:_ID_CHARS]}
    return about | ({"conversation": conversation.title[:_TITLE_CHARS]} if conversation.title else {})


def _add(conversation: Conversation, turns: Sequence[Source], target: Target) -> MemoryAdd:
    whose = target.whose(conversation.whose)
    return MemoryAdd(
        messages=tuple(turns),
        user_id=whose.user_id or "",
        agent_id=whose.agent_id,
        run_id=whose.run_id,
        metadata=_about(conversation, target),
        infer=True,
    )


def _parts(conversation: Conversation) -> Iterator[list[Source]]:
    """Yield the turns in writes of a bounded size."""
    part: list[Source] = []
    size = 0
    for turn in conversation.turns:
        for source in _sources(turn):
            chars = len(source.said())
            if part and (len(part) == _TURNS_OF_A_WRITE or size + chars > _WRITE_CHARS):
                yield part
                part, size = [], 0
            part.append(source)
            size += chars
    if part:
        yield part


def _sources(turn: Turn) -> Iterator[Source]:
    name = clean_name(turn.name)
    for text in _pieces(turn.content, name=name):
        yield Source(role=turn.role, name=name, content=text, message_id=turn.id[:_ID_CHARS], timestamp=turn.at)


def _pieces(text: str, *, name: str | None = None) -> Iterator[str]:
    """Cut a text that is longer than a memory may be; lone surrogates become question marks."""
    clean = text.encode("utf-8", "replace").decode()
    return filter(str.strip, pieces(clean, name=name, most_chars=MAX_TEXT_CHARS))
