"""A real Redis Cluster of six processes on the loopback: three primaries, each with a replica."""

import random
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

    servers: list[RedisServer]
    options: tuple[str, ...] = ()

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
            cluster = cls(servers, options)
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
        """The numbers of those that are alive and primaries now."""
        alive = [number for number, server in enumerate(self.servers) if server.process.poll() is None]
        return [number for number in alive if self.info(number)["role"] == "master"]

    def kill_primary(self) -> int:
        """``kill -9`` of a primary by chance; its number."""
        number = random.choice(self.primaries())
        self.servers[number].kill()
        return number

    def wait_until_taken_over(self, dead: int) -> None:
        """Wait until a replica is a primary instead of the dead one."""
        wait_for(lambda: len(self.primaries()) == _PRIMARIES, f"a primary instead of number {dead}")

    def revive(self, number: int) -> None:
        """Start a killed server, which becomes a replica, and wait until all is as before."""
        dead = self.servers[number]
        self.servers[number] = RedisServer.start(port=dead.port, folder=dead.folder, options=self.options)
        self._wait_until_whole()

    def size(self) -> int:
        """How many keys there are."""
        return sum(int(self.ask(number, "DBSIZE")) for number in self.primaries())

    def flush(self) -> None:
        """Forget everything."""
        for number in self.primaries():
            self.ask(number, "FLUSHALL")

    def _has_replica(self, number: int) -> bool:
        """Whether the primary's replica has the primary's data and follows it."""
        return self.info(number).get("slave0", {}).get("state") == "online"

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
        self._wait_until_whole()

    def _wait_until_whole(self) -> None:
        numbers = range(len(self.servers))
        wait_for(lambda: all(self._serves(number) for number in numbers), "all slots and replicas")
        wait_for(lambda: all(self._has_replica(number) for number in self.primaries()), "the replicas' data")

    def _known(self, number: int) -> int:
        return int(self.ask(number, "CLUSTER INFO")["cluster_known_nodes"])

    def _serves(self, number: int) -> bool:
        """Whether the node knows of all slots and of all three replicas."""
        shown = cast("dict[str, dict[str, Any]]", self.ask(number, "CLUSTER NODES"))
        replicas = sum("slave" in node["flags"] for node in shown.values())
        return self.ask(number, "CLUSTER INFO")["cluster_state"] == "ok" and replicas == _PRIMARIES
