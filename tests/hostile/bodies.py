"""Abusers whose bodies cost more than they weigh."""

import itertools
from collections.abc import Sequence
from typing import Final

from tests.hostile.abusing import Abuse
from tests.hostile.holders import CHAT, MIB

ADD, SEARCH, READ = "/v1/memory/add", "/v1/memory/search", "/v1/long-read"
_AT_ONCE: Final = 8
_LEVELS: Final = (200, 900, 5_000, 100_000)


async def _in_turn(it: Abuse, requests: Sequence[tuple[str, object]]) -> None:
    """Each of eight clients sends the next one."""
    turns = itertools.cycle(requests)
    await it.many(_AT_ONCE, lambda: it.post(*next(turns)))


async def giant_json(it: Abuse) -> None:
    """Bodies as long as the gateway takes, of many values and of few."""
    many = b'{"model":"m","messages":[' + b"{}," * (5 * MIB) + b"{}]}"
    fewer = b'{"model":"m","messages":[{"role":"user","content":"x"}],"a":[' + b"[]," * 140_000 + b"0]}"
    text = b'{"model":"m","messages":[{"role":"user","content":"' + b"x" * (15 * MIB) + b'"}]}'
    added = b'{"user_id":"u","messages":[{"role":"user","content":"' + b"x" * (15 * MIB) + b'"}]}'
    document = b'{"model":"m","question":"q","document":{"text":"' + b"x" * (60 * MIB) + b'"}}'
    await _in_turn(it, [(CHAT, many), (CHAT, fewer), (CHAT, text), (ADD, added), (READ, document)])


async def deep_json(it: Abuse) -> None:
    """Objects and lists inside one another."""
    nested = [opened * levels + b"0" + closed * levels for levels in _LEVELS for opened, closed in _BRACKETS]
    chats = [b'{"model":"m","messages":[{"role":"user","content":"x"}],"deep":' + deep + b"}" for deep in nested]
    adds = [_added(b'{"a":' + deep + b"}") for deep in nested]
    await _in_turn(it, [*((CHAT, body) for body in chats), *((ADD, body) for body in adds)])


_BRACKETS: Final = ((b"[", b"]"), (b'{"a":', b"}"))


def _added(metadata: bytes) -> bytes:
    return b'{"user_id":"u","infer":false,"messages":[{"role":"user","content":"x"}],"metadata":' + metadata + b"}"


async def metadata_bombs(it: Abuse) -> None:
    """Long keys above many leaves, at the limit and far beyond it."""
    within = {"k" * 60: {f"l{number}": bool(number % 2) for number in range(900)}}
    beyond = {"k" * MIB: {f"l{number}": number for number in range(3000)}}
    bodies = [
        {"user_id": "u", "infer": infer, "messages": [{"role": "user", "content": "x"}], "metadata": metadata}
        for metadata in (within, beyond)
        for infer in (True, False)
    ]
    await _in_turn(it, [(ADD, body) for body in bodies])


async def regex_bait(it: Abuse) -> None:
    """Texts on which careless patterns run for seconds."""
    baits = ["may " * 8_000, "!" * 20_000 + " ", "a" * 30_000, "1-" * 15_000, "\t \n" * 10_000 + "x"]
    searches = [(SEARCH, {"query": bait[:32_000], "user_id": "u"}) for bait in baits]
    turns = [{"role": "user", "content": bait} for bait in baits]
    adds = [(ADD, {"user_id": "u", "infer": False, "messages": [turn]}) for turn in turns]
    chats = [(CHAT, {"model": "m", "messages": [turn], "memory": {"user_id": "u"}}) for turn in turns]
    reads = [(READ, _read(f"The key is here. {bait}")) for bait in baits]
    await _in_turn(it, [*searches, *adds, *chats, *reads])


def _read(text: str) -> dict[str, object]:
    return {"model": "m", "question": "Where?", "document": {"text": text}, "evidence": True}


async def odd_values(it: Abuse) -> None:
    """Times at the edges of every calendar, half characters, numbers that no type holds."""
    times = ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-23:59", "0999-12-31T23:59:59Z", "2026-02-30T00:00:00Z"]
    adds = [(ADD, {"user_id": "u", "messages": [{"role": "user", "content": "x", "timestamp": at}]}) for at in times]
    searches = [(SEARCH, {"user_id": "u", "query": "x", "as_of": at}) for at in times]
    half = rb'{"user_id":"u\ud800","query":"\udfff","messages":[{"role":"user","content":"\ud83d"}],"model":"m"}'
    number = b'{"user_id":"u","query":"x","top_k":1e400,"filters":{"a":' + b"9" * 400 + b'},"model":"m","messages":[]}'
    odd = [(path, body) for path in (ADD, SEARCH, CHAT, READ) for body in (half, number)]
    await _in_turn(it, [*adds, *searches, *odd])
