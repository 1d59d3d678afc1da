"""The requests: short chats, whole or streamed (at once or paced), with or without memory; bodies of 100K tokens."""

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

import orjson

from benchmarks.gateway.load import post
from benchmarks.mock_engine import TAKE_YOUR_TIME
from memloop.wire.memory import MemoryDraft, Namespace, StoreAdd
from memloop_clients import StoreClient

Kind: TypeAlias = Literal["json", "stream", "stream_paced", "json_100k"]
STREAMS: tuple[Kind, ...] = ("stream", "stream_paced")

ENGINE_LATENCY_S = 0.005
"""Short, so that at a concurrency of 32 the engine (6,400 answers a second) does not limit throughput."""
TENANT = "local"
API_KEY = f"sk-{hashlib.sha256(b'memloop benchmark').hexdigest()}"
"""The key of every request: our gateway and the peer both check it. The peer refuses to start with a short one."""
USERS = 20
MEMORIES_EACH = 20
_LONG_CHARS = 400_000  # 100,000 tokens at the usual four characters each
_PROSE = "It was a quiet morning in the harbour, and nobody spoke. "
_PLACES = ("north gate", "lighthouse", "fish market", "old mill", "ferry pier")


@dataclass(frozen=True, slots=True)
class Level:
    """A number of requests over a number of connections."""

    kind: Kind
    concurrency: int
    requests: int


LEVELS = (
    *(Level("json", c, n) for c, n in ((1, 200), (4, 400), (16, 600), (32, 800), (64, 800))),
    *(Level(kind, c, n) for kind in STREAMS for c, n in ((1, 100), (4, 300), (16, 400), (32, 400), (64, 400))),
    *(Level("json_100k", c, n) for c, n in ((1, 30), (4, 60))),
)


def requests(level: Level, *, memory: bool) -> list[bytes]:
    """Encode the level's requests as raw HTTP. Each asks a different question."""
    return [_request(level.kind, number, memory=memory) for number in range(level.requests)]


def _request(kind: Kind, number: int, *, memory: bool) -> bytes:
    question = f"Question {number}: who keeps the key of the {_PLACES[number % len(_PLACES)]}?"
    question += f" {TAKE_YOUR_TIME}" if kind == "stream_paced" else ""
    context = (_PROSE * (1 + _LONG_CHARS // len(_PROSE)))[:_LONG_CHARS] if kind == "json_100k" else _PROSE
    body: dict[str, object] = {
        "model": "mock",
        "messages": [{"role": "system", "content": context}, {"role": "user", "content": question}],
        "temperature": 0.7,
    }
    if memory:
        body["memory"] = {"user_id": f"user-{number % USERS}"}
    if kind in STREAMS:
        body["stream_options"] = {"include_usage": True}
        body["stream"] = True
    return post("/v1/chat/completions", orjson.dumps(body), key=API_KEY)


async def remember(store_url: str) -> None:
    """Store the memories of every user of the workload."""
    async with StoreClient(store_url) as store:
        for user in range(USERS):
            drafts = tuple(_memory(user, number) for number in range(MEMORIES_EACH))
            await store.add(StoreAdd(namespace=Namespace(tenant=TENANT, user_id=f"user-{user}"), drafts=drafts))


def _memory(user: int, number: int) -> MemoryDraft:
    place = _PLACES[number % len(_PLACES)]
    text = f"On day {number} keeper {user}-{number} took over the key of the {place}."
    return MemoryDraft(key=f"keeper of the {place}, day {number}", value=text)
