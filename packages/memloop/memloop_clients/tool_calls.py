"""Tells the tool calls of a streamed reply apart, whatever its engine makes of ``index``, ``id`` and ``name``.

OpenAI's stream names a call in its first piece and numbers every piece. Engines leave the number out, number every
call 0, repeat name and id in every piece, cut them in pieces, or send the arguments as an object
(docs/engine-replies.md).
"""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson
from pydantic import JsonValue

from memloop.wire.base import object_in
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError

_OF_PIECE: Final = frozenset({"index", "id", "type", "function", "name", "arguments"})
_OF_FUNCTION: Final = frozenset({"name", "arguments"})


@dataclass(slots=True, eq=False)
class Call:
    """One call that grows. ``place`` is its number among the calls of the reply."""

    place: int
    id: str = ""
    name: str = ""
    begun: bool = False
    """Whether a piece with its name was given out: then name and id stay."""
    closed: bool = False
    """Whether whatever still comes for it is left out."""
    _pieces: list[str] = field(default_factory=list[str])
    _chars: int = 0

    def add(self, more: str) -> None:
        self._pieces.append(more)
        self._chars += len(more)

    @property
    def arguments(self) -> str:
        """What has come of them."""
        return "".join(self._pieces)

    @property
    def is_blank(self) -> bool:
        """Whether no arguments have come."""
        return not any(piece.strip() for piece in self._pieces)

    def is_whole(self) -> bool:
        """Return whether the arguments are a whole object."""
        last = next((piece for piece in reversed(self._pieces) if piece.strip()), "")
        if not last.rstrip().endswith("}"):
            return False
        try:
            return isinstance(orjson.loads(self.arguments), dict)
        except orjson.JSONDecodeError:
            return False

    def repeats(self, more: str) -> bool:
        """Return whether these are its whole arguments once more."""
        return len(more) == self._chars and self.is_whole() and more == self.arguments


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of a call in OpenAI's form."""

    call: Call
    piece: Json


class ToolCalls:
    """The calls of one reply. ``offered`` are the names of the tools that the request has."""

    def __init__(self, offered: Collection[str] = ()) -> None:
        self._offered = frozenset(offered)
        self._certain = frozenset(
            name for name in self._offered if not any(other != name and other.startswith(name) for other in offered)
        )
        """The names that no further piece can make another tool's."""
        self._calls: list[Call] = []
        self._newest: dict[int, Call] = {}
        self._by_id: dict[str, Call] = {}
        self._used = set[str]()
        self._others: dict[int, Json] = {}
        """What else came with calls that have not begun, by place."""

    def __len__(self) -> int:
        return len(self._calls)

    def take(self, pieces: Sequence[Json]) -> list[CallPiece]:
        """Take the pieces of one delta; return those that a client can be given, each with its call."""
        found: list[CallPiece] = []
        for place, piece in enumerate(pieces):
            function = object_in(piece.get("function")) or piece
            index = _number(piece.get("index"), place)
            name, call_id, more = _text(function.get("name")), _text(piece.get("id")), _arguments(function)
            call = self._call_of(index, call_id, name, more)
            if call is None:
                call = Call(len(self._calls))
                self._calls.append(call)
            self._newest[index] = call
            if call.closed or call.repeats(more):
                continue
            others = _others(piece, function)
            if call.begun:
                if more or others:
                    call.add(more)
                    found.append(CallPiece(call, _joined(others, {"index": call.place}, {"arguments": more})))
                continue
            call.id, call.name = _grown(call.id, call_id), _grown(call.name, name)
            self._by_id[call.id] = call
            call.add(more)
            self._others[call.place] = {**self._others.get(call.place, {}), **others}
            if call.name and (not call.is_blank or (call.id and call.name in self._certain)):
                found.append(self._begin(call))
        return found

    def end(self) -> list[CallPiece]:
        """Return what is missing of the calls at the reply's end. Raises EngineError for a call without a name."""
        found: list[CallPiece] = []
        for call in self._calls:
            if call.closed:
                continue
            if not call.name:
                raise EngineError("a tool call of the engine has no name")
            if call.is_blank:
                call.add("{}")
                if call.begun:
                    found.append(CallPiece(call, {"index": call.place, "function": {"arguments": "{}"}}))
            if not call.begun:
                found.append(self._begin(call))
        return found

    def _begin(self, call: Call) -> CallPiece:
        call.begun = True
        if not call.id or call.id in self._used:
            call.id = f"call_{secrets.token_hex(12)}"
        self._used.add(call.id)
        self._by_id.setdefault(call.id, call)
        head: Json = {"index": call.place, "id": call.id, "type": "function"}
        others = self._others.pop(call.place, {})
        return CallPiece(call, _joined(others, head, {"name": call.name, "arguments": call.arguments}))

    def _call_of(self, index: int, call_id: str, name: str, more: str) -> Call | None:
        """Return the call that a piece belongs to, None for a new one."""
        newest = self._newest.get(index)
        known = self._by_id.get(call_id) if call_id else None
        if known is not None and known is not newest:
            if name and (newest is None or name != known.name or (known.is_whole() and not known.repeats(more))):
                return None  # an engine that gives all calls one id
            newest = known
        if newest is None:
            return None
        if call_id and newest.id and known is None:  # else the id comes in pieces, or every piece has one of its own
            return None if name and newest.name else newest
        if not name or not newest.name or newest.repeats(more):
            return newest
        if not newest.is_blank:
            return newest if name == newest.name and not newest.is_whole() else None
        if newest.begun or name == newest.name:
            return newest if name == newest.name else None
        are_two = name in self._offered and newest.name in self._offered and newest.name + name not in self._offered
        return None if are_two else newest


def _grown(text: str, more: str) -> str:
    """Return an id or a name with another piece of it, which may repeat the ones before."""
    return more if more.startswith(text) else text + more


def _number(value: JsonValue, place: int) -> int:
    try:
        return int(value) if isinstance(value, int | float | str) else place
    except (ValueError, OverflowError):
        return place


def _text(value: JsonValue) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _arguments(function: Json) -> str:
    """Return the arguments as JSON text; some engines send the object itself."""
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        return arguments
    if not arguments:
        return ""
    try:
        return orjson.dumps(arguments).decode()
    except orjson.JSONEncodeError as error:
        raise EngineError("the arguments of the engine's tool call are nested too deeply") from error


def _others(piece: Json, function: Json) -> Json:
    """Return what else is in a piece, such as Gemini's signature, which must come back with the call."""
    others: Json = {name: value for name, value in piece.items() if name not in _OF_PIECE and value is not None}
    inner: Json = {name: value for name, value in function.items() if name not in _OF_FUNCTION and value is not None}
    kept: Json = {"function": inner}
    return others | kept if inner and function is not piece else others


def _joined(others: Json, head: Json, function: Json) -> Json:
    named: Json = {"function": object_in(others.get("function")) | function}
    return others | head | named
