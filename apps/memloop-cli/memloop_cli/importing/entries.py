"""What a file of another system holds, before it is sent: facts, conversations, and what cannot be used."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeAlias, cast

from pydantic import JsonValue

from memloop.wire.chat import Json
from memloop.wire.fields import EARLIEST, LATEST, joined

_MILLISECONDS_FROM: Final = 1e11
"""Numbers from here on are milliseconds since the epoch, not seconds."""
ROLES: Final = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
"""Whose turns are kept, under the name that they get."""


class Unreadable(Exception):
    """A record has not the shape of its format; the message gives the reason, never the content."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. ``id`` is unique in its conversation; ``name`` is its speaker's."""

    role: str
    content: str
    id: str
    at: datetime | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Whose:
    """The user, agent and run that a record names."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in their order; ``dropped`` counts messages without a text of a user or an assistant."""

    id: str
    turns: tuple[Turn, ...]
    whose: Whose = Whose()
    title: str = ""
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Fact:
    """A memory, to be kept as it is."""

    id: str
    text: str
    whose: Whose = Whose()
    at: datetime | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


Entry: TypeAlias = Conversation | Fact


def fields_of(value: object) -> Json:
    """Return a JSON object's fields. Raises Unreadable for anything else."""
    if not isinstance(value, dict):
        raise Unreadable("not a JSON object")
    return cast(Json, value)


def list_of(value: object, name: str) -> list[object]:
    """Return a JSON list. Raises Unreadable."""
    if not isinstance(value, list):
        raise Unreadable(f"{name} is not a list")
    return cast("list[object]", value)


def text_of(fields: Json, *names: str) -> str:
    """Return the first of these fields that holds a text; empty without one."""
    found = (fields.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value.strip()), "")


def whose_in(fields: Json) -> Whose:
    """Return the ids that a record names."""
    ids = (text_of(fields, name)[:256] or None for name in ("user_id", "agent_id", "run_id"))
    return Whose(*ids)


def moment_of(value: object) -> datetime | None:
    """Return a time: ISO 8601, or seconds or milliseconds since the epoch. Raises Unreadable; None stays None."""
    if value is None or value == "":
        return None
    try:
        moment = _moment(value)
    except (ValueError, OverflowError, OSError) as error:
        raise Unreadable("a time that cannot be read") from error
    if not EARLIEST <= moment < LATEST:
        raise Unreadable("a time outside of the years 1000 to 8999")
    return moment


def _moment(value: object) -> datetime:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return datetime.fromtimestamp(value / 1000 if abs(value) >= _MILLISECONDS_FROM else value, UTC)
    if not isinstance(value, str):
        raise Unreadable("a time that is neither a text nor a number")
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def stable_id(*parts: str) -> str:
    """Return the same id for the same parts, in the form of a UUID."""
    digest = hashlib.sha256(joined(*parts).encode("utf-8", "replace")).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def content_id(texts: Sequence[str]) -> str:
    """Return an id for a record that has none."""
    return stable_id("content", *texts)
