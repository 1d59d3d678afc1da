"""Derives a memory's place in its conversation and its speaker, by which a search finds neighbouring turns."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from memloop.wire.memory import MemoryType, Source, repeated_turn

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)
_ARRIVAL_BITS = 30
_MAX_SECONDS = 2**32 - 1
"""136 years on either side of the epoch; a time beyond stands at that end."""
_ROLES = frozenset({"user", "assistant", "system", "tool"})
_NAMED = re.compile(r"(?P<name>[^\W\d_][\w.'\u2019-]*(?: [^\W\d_][\w.'\u2019-]*){0,2}): \S")
NAME_WORD = re.compile(r"[^\W\d_]{2,}")

PLACES_PER_SECOND = 2**_ARRIVAL_BITS


def place_of(said_at: datetime, arrived_at: datetime) -> int:
    """Returns a number that orders memories: by the second of event time, then by arrival in microseconds.

    Arrival is kept modulo 18 minutes, so that both fit 63 bits: only a second whose memories take longer than that to
    arrive may come out rotated.
    """
    seconds = min(max((said_at - _EPOCH) // _SECOND, -_MAX_SECONDS), _MAX_SECONDS)
    return seconds * PLACES_PER_SECOND + (arrived_at - _EPOCH) // _MICROSECOND % PLACES_PER_SECOND


def speaker_of(
    memory: str, memory_type: MemoryType, tags: Sequence[str], sources: Sequence[Source] = ()
) -> tuple[str, ...]:
    """Returns the words of the speaker's name, folded; empty without a name.

    The turn that a memory repeats has the name. A raw turn may carry it as its first tag instead, and any text may
    begin with it ("Anna: I moved"). Roles are not names.
    """
    turn = repeated_turn(memory, sources)
    if turn and turn.name:
        return name_words(turn.name)
    name = tags[0] if memory_type == "RawTurn" and tags else ""
    if name.casefold() in _ROLES or not name:
        match = _NAMED.match(memory)
        name = match["name"] if match and match["name"][0].isupper() else ""
    return () if name.casefold() in _ROLES else name_words(name)


def name_words(text: str) -> tuple[str, ...]:
    """Returns the words of a text that can be part of a name, folded, each once."""
    return tuple(dict.fromkeys(match.group() for match in NAME_WORD.finditer(text.casefold())))
