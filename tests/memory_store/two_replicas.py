"""Two store processes' insides over one Redis and one vector store, every shared operation a step of a scheduler."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from redis import Redis

from memloop_service import new_registry
from memloop_state.link import State
from memloop_state.store.erasures import OPEN_MS, Erasures
from memloop_state.store.service import ServiceRecord
from memloop_state.store.tenants import Buffers
from memory_store.embedding.encoding import Bm25, TextEncoding
from memory_store.items.guarded import GuardedStore, NamespaceLocks
from memory_store.items.items import Items
from memory_store.items.statements import WritePolicy
from memory_store.items.tools import ItemTools
from memory_store.items.writing import Writer
from memory_store.metrics import Metrics
from memory_store.upkeep.jobs import Upkeep
from memory_store.upkeep.membership import Membership
from memory_store.vectors.live import Gate, LiveCollection
from memory_store.vectors.schema import CollectionSpec
from tests.fakes.embedder import HashingEncoder
from tests.fakes.plain_vectors import PlainCollections, Turn
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.feeds import feed_of

SPEC = CollectionSpec("hashing", 4)
_METRICS = Metrics(new_registry())
_BM25 = Bm25()
_ENCODER = HashingEncoder(dimension=4)


class SteppedRedis:
    """The commands of the store's connection, sent by a client that blocks, each at its turn."""

    def __init__(self, client: Redis, turn: Turn) -> None:
        self._client = client
        self._turn = turn

    def __getattr__(self, command: str) -> Callable[..., Any]:
        async def send(*args: Any, sure: bool = False) -> Any:
            del sure  # the one server has no replicas
            await self._turn()
            return getattr(self._client, command)(*args)

        return send


@dataclass(frozen=True)
class SteppedEmbedder:
    """Embedding takes a turn too."""

    turn: Turn

    async def embed(self, texts: Any) -> Any:
        """The encoder's vectors."""
        await self.turn()
        return _ENCODER.encode(texts)

    async def embed_query(self, text: Any) -> Any:
        """The encoder's vector."""
        return (await self.embed([text]))[0]

    async def start(self) -> int:
        """Ready at once."""
        return _ENCODER.dimension

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class Replica:
    """One store process."""

    vectors: LiveCollection
    writer: Writer
    items: Items
    tools: ItemTools
    guarded: GuardedStore
    erasures: Erasures
    buffers: Buffers
    membership: Membership
    upkeep: Upkeep


async def replica(client: Redis, collections: PlainCollections, turn: Turn, *, open_ms: int = OPEN_MS) -> Replica:
    """Another process over the same Redis and collections."""
    link = cast(State, SteppedRedis(client, turn))
    vectors = LiveCollection(collections)
    await vectors.open(SPEC)
    gate, encoding = Gate(), TextEncoding(SteppedEmbedder(turn), _BM25)
    locks = NamespaceLocks(gate)
    record = ServiceRecord(link, vectors.site, settles_ms=0)
    membership = Membership(
        vectors, encoding, record, gate=gate, embedder_for=lambda _: SteppedEmbedder(turn), pause=turn
    )
    await membership.catch_up()
    erasures = Erasures(link, membership, open_ms=open_ms, pause=turn)
    feed, buffers = feed_of(link), Buffers(link, max_turns=10)
    guarded = GuardedStore(vectors, erasures, feed)
    tools = ItemTools(vectors, encoding, locks, guarded, _METRICS)
    return Replica(
        vectors=vectors,
        writer=Writer(tools, WritePolicy()),
        items=Items(tools, erasures=erasures, buffers=buffers, feed=feed, deleted_life=timedelta(days=1)),
        tools=tools,
        guarded=guarded,
        erasures=erasures,
        buffers=buffers,
        membership=membership,
        upkeep=Upkeep(
            vectors,
            membership,
            gate=gate,
            embedder_for=lambda _: SteppedEmbedder(turn),
            rewrite_files=_nothing_to_rewrite,
            metrics=_METRICS,
            shut_s=PATIENCE_S,
        ),
    )


async def _nothing_to_rewrite() -> tuple[str, ...]:
    return ()


def day(number: int) -> datetime:
    """A day of January 2026."""
    return datetime(2026, 1, number, tzinfo=UTC)
