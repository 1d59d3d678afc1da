"""A clock that moves only when a test moves it, for Python's monotonic time and for Redis's scripts."""

import hashlib
import time
from collections.abc import Callable
from typing import Any, Final

import pytest
from redis import Redis
from redis.exceptions import NoScriptError

_KEY: Final = "virtual clock"
_TIME: Final = "redis.call('TIME')"
_BEGAN_S: Final = 1_767_225_600
_READ_S: Final = 1e-6
"""Two looks at a clock never show the same time."""


class VirtualClock:
    """The seconds since a start. Timers of an event loop follow it once it replaces ``time.monotonic``."""

    def __init__(self) -> None:
        self.now = 0.0

    def instead_of_monotonic(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every deadline of this process, and its event loop's timers, are of this clock until the test's end."""
        began = time.monotonic()

        def read() -> float:
            self.now += _READ_S
            return began + self.now

        monkeypatch.setattr(time, "monotonic", read)


class ClockedRedis:
    """A client that blocks, of a Redis whose scripts read the virtual clock instead of the server's."""

    def __init__(self, client: Redis, clock: VirtualClock) -> None:
        self._client: Any = client
        self._clock = clock
        self._known: dict[str, str] = {}

    def __getattr__(self, command: str) -> Callable[..., Any]:
        return getattr(self._client, command)

    def execute_command(self, command: str, script: str, *args: Any) -> Any:
        """Run a command; a script as one that reads the clock."""
        if command not in {"EVAL", "EVALSHA"}:
            return self._client.execute_command(command, script, *args)
        if command == "EVAL":
            clocked = script.replace(_TIME, f"redis.call('HMGET', '{_KEY}', 's', 'us')")
            script = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
            self._known[script] = str(self._client.script_load(clocked))
        if script not in self._known:
            raise NoScriptError("this script is not known with another clock")
        self._set()
        return self._client.execute_command("EVALSHA", self._known[script], *args)

    def _set(self) -> None:
        seconds, rest = divmod(round(self._clock.now * 1_000_000), 1_000_000)
        self._client.hset(_KEY, mapping={"s": _BEGAN_S + seconds, "us": rest})
