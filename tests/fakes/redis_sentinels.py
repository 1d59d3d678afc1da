"""A real Redis that fails over on the loopback: a primary, its replicas, and three Sentinels that watch them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from redis import Redis

from tests.fakes.processes import wait_for
from tests.fakes.redis_server import RedisServer

NAME: Final = "memloop"
KEY: Final = "the-servers-key"
SENTINEL_KEY: Final = "the-sentinels-key"
_OF_DATA: Final = ("--requirepass", KEY, "--masterauth", KEY, "--repl-diskless-sync-delay", "0")
_WATCHING: Final = """
requirepass {sentinel_key}
sentinel sentinel-pass {sentinel_key}
sentinel monitor {name} 127.0.0.1 {port} {quorum}
sentinel auth-pass {name} {key}
sentinel down-after-milliseconds {name} {down_ms}
sentinel failover-timeout {name} 1500
sentinel parallel-syncs {name} 2
"""


@dataclass
class WatchedRedis:
    """The processes: data servers, of which the first began as the primary, and Sentinels."""

    servers: list[RedisServer]
    sentinels: Sequence[RedisServer]

    @property
    def url(self) -> str:
        """``redis+sentinel://`` and the Sentinels, with a key for them and one for the servers."""
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://:{KEY}@{hosts}/{NAME}?sentinel_password={SENTINEL_KEY}"

    @classmethod
    def start(cls, *, replicas: int = 2, sentinels: int = 3, down_ms: int = 500) -> "WatchedRedis":
        """Start, and wait until the replicas have the primary's data and each Sentinel sees all of them.

        A primary that is silent for ``down_ms`` is taken for dead.
        """
        watched = cls([], [])
        try:
            watched._start(replicas, sentinels, down_ms)
        except BaseException:
            watched.stop()
            raise
        return watched

    def _start(self, replicas: int, sentinels: int, down_ms: int) -> None:
        self.servers.append(RedisServer.start(options=_OF_DATA))
        self.servers += [RedisServer.start(options=self._replica_of(0)) for _ in range(replicas)]
        wait_for(lambda: self._synced(0), "the replicas' data")
        names = {"name": NAME, "key": KEY, "sentinel_key": SENTINEL_KEY, "down_ms": down_ms}
        config = _WATCHING.format(port=self.servers[0].port, quorum=sentinels // 2 + 1, **names)
        self.sentinels = [RedisServer.start(sentinel=config) for _ in range(sentinels)]
        self.wait_until_whole()

    def _replica_of(self, number: int) -> tuple[str, ...]:
        return (*_OF_DATA, "--replicaof", "127.0.0.1", str(self.servers[number].port))

    def ask(self, number: int, *words: str | int) -> Any:
        """A data server's reply to a command."""
        return _ask(self.servers[number], KEY, *words)

    def primary(self) -> int:
        """The number of the server that most Sentinels send clients to."""
        seen = [self._seen(sentinel)["port"] for sentinel in self.sentinels]
        ports = [server.port for server in self.servers]
        return ports.index(max(seen, key=seen.count))

    def set_down_ms(self, down_ms: int) -> None:
        """Change how long a primary is silent before it is taken for dead."""
        for sentinel in self.sentinels:
            assert _ask(sentinel, SENTINEL_KEY, "SENTINEL SET", NAME, "down-after-milliseconds", down_ms)

    def kill_primary(self) -> int:
        """``kill -9`` of the primary; its number."""
        number = self.primary()
        self.servers[number].kill()
        return number

    def revive(self, number: int) -> None:
        """Start a killed server as a replica of the primary that replaced it, and wait until all is as before."""
        dead, primary = self.servers[number], self.primary()
        options = self._replica_of(primary)
        self.servers[number] = RedisServer.start(port=dead.port, folder=dead.folder, options=options)
        self.wait_until_whole()

    def wait_until_taken_over(self, dead: int) -> None:
        """Wait until a replica is the primary instead of the dead one, and all Sentinels see it alive."""
        wait_for(lambda: self.primary() != dead and self._serves(self.primary()), "another primary")

    def wait_until_whole(self) -> None:
        """Wait until all replicas have the primary's data, and each Sentinel sees all servers alive."""
        wait_for(self._is_whole, "all replicas and Sentinels")

    def _is_whole(self) -> bool:
        return self._synced(self.primary()) and all(self._sees_all(sentinel) for sentinel in self.sentinels)

    def _synced(self, primary: int) -> bool:
        info = self.ask(primary, "INFO", "replication")
        others = range(len(self.servers) - 1)
        return all(info.get(f"slave{number}", {}).get("state") == "online" for number in others)

    def _sees_all(self, sentinel: RedisServer) -> bool:
        state = self._seen(sentinel)
        replicas = cast("list[dict[str, Any]]", _ask(sentinel, SENTINEL_KEY, "SENTINEL SLAVES", NAME))
        alive = [replica for replica in replicas if replica["flags"] == "slave"]
        return (state["flags"], state["num-other-sentinels"], len(alive)) == (
            "master",
            len(self.sentinels) - 1,
            len(self.servers) - 1,
        )

    def _serves(self, primary: int) -> bool:
        seen = [(state["port"], state["flags"]) for state in map(self._seen, self.sentinels)]
        return set(seen) == {(self.servers[primary].port, "master")} and self.ask(primary, "ROLE")[0] == "master"

    def _seen(self, sentinel: RedisServer) -> dict[str, Any]:
        return cast("dict[str, Any]", _ask(sentinel, SENTINEL_KEY, "SENTINEL MASTER", NAME))

    def stop(self) -> None:
        """End all processes."""
        for server in (*self.sentinels, *self.servers):
            server.stop()


def _ask(server: RedisServer, key: str, *words: str | int) -> Any:
    with Redis(port=server.port, password=key, decode_responses=True, socket_timeout=60.0) as client:
        return cast(Any, client.execute_command(*words))  # pyright: ignore[reportUnknownMemberType]
