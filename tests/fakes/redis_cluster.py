"""A real Redis Cluster of six processes on the loopback: three primaries, each with a replica."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from redis import Redis

from tests.fakes.ports import free_port
from tests.fakes.processes import wait_for
from tests.fakes.redis_server import RedisServer

SLOTS = 16384
_PRIMARIES = 3
_BUS_OFFSET = 10_000
"""The cluster's bus listens so far above a node's port."""


@dataclass
class RedisClusterServers:
    """The processes; the first three began as primaries, the replica of number n is number n + 3."""

    servers: Sequence[RedisServer]

    @property
    def url(self) -> str:
        """``redis+cluster://`` and all six nodes."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers)

    @classmethod
    def start(cls, *, appendonly: bool = False, node_timeout_ms: int = 15_000) -> "RedisClusterServers":
        """Start, join and wait until every slot is served and every replica has its data.

        A primary that is silent for ``node_timeout_ms`` is taken for dead.
        """
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", str(node_timeout_ms))
        options += ("--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0")
        servers: list[RedisServer] = []
        try:
            while len(servers) < 2 * _PRIMARIES:
                servers += [RedisServer.start(port=free_port(_BUS_OFFSET), appendonly=appendonly, options=options)]
            cluster = cls(servers)
            cluster._join()
        except BaseException:
            for server in servers:
                server.stop()
            raise
        return cluster

    def ask(self, number: int, *words: str | int) -> Any:
        """A node's reply to a command."""
        with Redis(port=self.servers[number].port, decode_responses=True, socket_timeout=60.0) as node:
            return cast(Any, node.execute_command(*words))  # pyright: ignore[reportUnknownMemberType]

    def info(self, number: int) -> dict[str, Any]:
        """A node's own word on replication."""
        return self.ask(number, "INFO", "replication")

    def primaries(self) -> list[int]:
        """The numbers of those that are primaries now."""
        return [number for number in range(len(self.servers)) if self.info(number)["role"] == "master"]

    def size(self) -> int:
        """How many keys there are."""
        return sum(int(self.ask(number, "DBSIZE")) for number in self.primaries())

    def flush(self) -> None:
        """Forget everything."""
        for number in self.primaries():
            self.ask(number, "FLUSHALL")

    def caught_up(self, number: int) -> bool:
        """Whether the primary's replica has all that the primary has."""
        info = self.info(number)
        return info["connected_slaves"] == 1 and info["slave0"]["offset"] == info["master_repl_offset"]

    def stop(self) -> None:
        """End all processes."""
        for server in self.servers:
            server.stop()

    def _join(self) -> None:
        for number, server in enumerate(self.servers):
            self.ask(number, "CLUSTER SET-CONFIG-EPOCH", number + 1)
            self.ask(0, "CLUSTER MEET", "127.0.0.1", server.port)
        for number in range(_PRIMARIES):
            first, last = (SLOTS * part // _PRIMARIES for part in (number, number + 1))
            self.ask(number, "CLUSTER ADDSLOTS", *range(first, last))
        numbers = range(len(self.servers))
        wait_for(lambda: all(self._known(number) == len(numbers) for number in numbers), "all nodes to meet")
        for number in range(_PRIMARIES):
            self.ask(number + _PRIMARIES, "CLUSTER REPLICATE", self.ask(number, "CLUSTER MYID"))
        wait_for(lambda: all(self._serves(number) for number in numbers), "all slots and replicas")
        wait_for(lambda: all(self.caught_up(number) for number in range(_PRIMARIES)), "the replicas' data")

    def _known(self, number: int) -> int:
        return int(self.ask(number, "CLUSTER INFO")["cluster_known_nodes"])

    def _serves(self, number: int) -> bool:
        """Whether the node knows of all slots and of all three replicas."""
        shown = cast("dict[str, dict[str, Any]]", self.ask(number, "CLUSTER NODES"))
        replicas = sum("slave" in node["flags"] for node in shown.values())
        return self.ask(number, "CLUSTER INFO")["cluster_state"] == "ok" and replicas == _PRIMARIES
