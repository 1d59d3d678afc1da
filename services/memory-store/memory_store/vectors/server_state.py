"""What a Qdrant server is and how a collection lies on its nodes now, beside what was asked for."""

from collections import defaultdict
from dataclasses import dataclass

from qdrant_client import AsyncQdrantClient, models

from memory_store.vectors.server_setup import ShardConfig, nodes_of


@dataclass(frozen=True, slots=True)
class ServerState:
    """``copies``: the live copies of the shard with the fewest; ``shards`` and ``nodes`` are those that there are."""

    version: str
    distributed: bool
    nodes: int
    shards: int
    copies: int
    copies_asked: int
    write_consistency: int

    @property
    def warning(self) -> str | None:
        """A sentence for the operator when there are fewer copies than were asked for."""
        if self.copies >= self.copies_asked:
            return None
        found = f"a shard of the vectors has {self.copies} of the {self.copies_asked} copies of MEMLOOP_QDRANT_REPLICAS"
        if not self.distributed:
            return f"{found}: the Qdrant server is not in distributed mode"
        if self.nodes < self.copies_asked:
            return f"{found}: the cluster has {self.nodes} nodes"
        return f"{found}: bring nodes back; a collection that was made with fewer gets them by POST /v1/admin/flush"


async def state_of(client: AsyncQdrantClient, name: str, sharding: ShardConfig) -> ServerState:
    """Ask the server. Raises the client's errors."""
    info = await client.get_collection(name)
    nodes = await nodes_of(client)
    copies = await _live_copies(client, name) if nodes else [1] * (info.config.params.shard_number or 1)
    return ServerState(
        version=(await client.info()).version,
        distributed=nodes > 0,
        nodes=nodes or 1,
        shards=len(copies),
        copies=min(copies, default=0),
        copies_asked=sharding.replicas,
        write_consistency=info.config.params.write_consistency_factor or 1,
    )


async def _live_copies(client: AsyncQdrantClient, name: str) -> list[int]:
    """The number of each shard's live copies, as the node that answers counts them."""
    found = await client.collection_cluster_info(name)
    counts: defaultdict[int, int] = defaultdict(int)
    for shard in (*found.local_shards, *found.remote_shards):
        counts[shard.shard_id] += shard.state == models.ReplicaState.ACTIVE
    return list(counts.values())
