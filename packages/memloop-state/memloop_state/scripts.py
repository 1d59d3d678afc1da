"""Runs Lua scripts as typed calls: text in, text and numbers out; a lost connection raises Unavailable."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TypeAlias, cast

from memloop_state.link import LuaScript, State, redis_errors

Reply: TypeAlias = "int | str | list[Reply] | None"
Args: TypeAlias = Sequence[str | bytes | int | float]


def lua(*names: str) -> str:
    """Return the source of these files of ``lua/``, one behind the other."""
    return "".join((files("memloop_state") / "lua" / f"{name}.lua").read_text("utf-8") for name in names)


def text(value: object) -> str:
    """Return a reply as text, whether or not the client decodes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def plain(reply: object) -> Reply:
    """Return a reply with all bytes decoded, at any depth."""
    if isinstance(reply, list | tuple):
        return [plain(part) for part in cast(Sequence[object], reply)]
    if reply is None or isinstance(reply, int):
        return reply
    return text(reply)


def entries(reply: object) -> list[tuple[str, dict[str, str]]]:
    """Return the entries of an XREAD or XREADGROUP reply, stream by stream, for RESP2 and RESP3."""
    return [entry for _, found in entries_by_stream(reply) for entry in found]


def entries_by_stream(reply: object) -> list[tuple[str, list[tuple[str, dict[str, str]]]]]:
    """Return the entries of an XREAD or XREADGROUP reply by the name of their stream."""
    streams = list(cast(Mapping[object, object], reply).items()) if isinstance(reply, Mapping) else reply
    pairs = cast(Sequence[tuple[object, Sequence[object]]], streams or ())
    return [(text(name), entry_list(found)) for name, found in pairs]


def entry_list(found: Sequence[object]) -> list[tuple[str, dict[str, str]]]:
    """Return stream entries as (id, fields), without entries whose body was deleted."""
    if len(found) == 1 and isinstance(found[0], list) and not _is_entry(cast(list[object], found[0])):
        return entry_list(cast(list[object], found[0]))
    pairs = cast(Sequence[tuple[object, Mapping[object, object] | None] | None], found)
    return [
        (text(pair[0]), {text(name): text(value) for name, value in pair[1].items()})
        for pair in pairs
        if pair is not None and pair[1]
    ]


def _is_entry(value: list[object]) -> bool:
    return len(value) == 2 and not isinstance(value[0], list | tuple)


class Steps:
    """The atomic steps of one Lua program: the functions of its table ``steps``, called by their names.

    An ``acknowledged`` step returns once replicas have what it wrote. Steps raise Unavailable.
    """

    def __init__(self, redis: State, *files: str) -> None:
        source = f"{lua('prelude', *files)}\nreturn steps[table.remove(ARGV, 1)]()"
        self._plain = LuaScript(redis, source)
        self._acknowledged = LuaScript(redis, source, acknowledged=True)

    async def __call__(self, step: str, keys: Sequence[str], args: Args, *, acknowledged: bool = False) -> Reply:
        """Run a step and return its reply."""
        return plain(await self._replied(step, keys, args, acknowledged))

    async def number(self, step: str, keys: Sequence[str], args: Args, *, acknowledged: bool = False) -> int:
        """Run a step that returns a number."""
        return int(cast(int, await self._replied(step, keys, args, acknowledged)))

    async def rows(self, step: str, keys: Sequence[str], args: Args, *, acknowledged: bool = False) -> list[str]:
        """Run a step that returns a list of scalars; each becomes text, nil becomes ''."""
        reply = cast("list[object]", await self._replied(step, keys, args, acknowledged) or [])
        return ["" if part is None else text(part) for part in reply]

    async def _replied(self, step: str, keys: Sequence[str], args: Args, acknowledged: bool) -> object:
        with redis_errors():
            return await (self._acknowledged if acknowledged else self._plain)(keys=keys, args=[step, *args])
