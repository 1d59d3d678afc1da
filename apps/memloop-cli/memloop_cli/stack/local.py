"""The local stack's components, in the order of their start."""

import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memloop_cli.errors import CliError
from memloop_cli.stack.component import Component, http_probe, redis_probe
from memloop_cli.stack.redis import find_redis, redis_command

_HOST = "127.0.0.1"
Stages = tuple[tuple[Component, ...], ...]
"""Components of one stage start together; a stage starts when the one before it is ready."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Six consecutive ports, the gateway's first."""

    gateway: int

    @property
    def by_name(self) -> dict[str, int]:
        """Each component's port; ``engine`` is the engine's own, behind ``inference``."""
        names = ("gateway", "store", "inference", "engine", "worker", "redis")
        return {name: self.gateway + number for number, name in enumerate(names)}

    def taken(self) -> list[str]:
        """Return the ports in use, as ``name port``."""
        return [f"{name} {port}" for name, port in self.by_name.items() if _listens(port)]


def local_stages(home: Path, ports: Ports, environment: Mapping[str, str]) -> Stages:
    """Build the stack for this machine. With ``MEMLOOP_ENGINE_URL`` set, it starts no engine.

    Raises CliError when there is no Redis to start.
    """
    given_engine = environment.get("MEMLOOP_ENGINE_URL")
    stack = _LocalStack(home, ports.by_name, environment)
    engine = () if given_engine else (stack.inference(),)
    return (
        (stack.redis(),),
        (stack.store(), *engine),
        (stack.gateway("gateway.main", "gateway"), stack.gateway("gateway.worker", "worker")),
    )


@dataclass(frozen=True, slots=True)
class _LocalStack:
    home: Path
    ports: Mapping[str, int]
    environment: Mapping[str, str]

    def redis(self) -> Component:
        folder = self.home / "redis"
        folder.mkdir(parents=True, exist_ok=True)
        port = self.ports["redis"]
        command = redis_command(find_redis(), port=port, folder=folder)
        return Component("redis", "queues and buffers", command, self.environment, port, redis_probe(port), 30.0)

    def store(self) -> Component:
        more = {
            "MEMLOOP_REDIS_URL": self._redis_url,
            "MEMLOOP_DATA_DIR": str(self.home / "edge"),
            "HF_HUB_OFFLINE": self.environment.get("HF_HUB_OFFLINE", "1"),
        }
        return self._python("memory_store.main", "store", "memories and their search", more, 180.0)

    def inference(self) -> Component:
        more = {"MEMLOOP_ENGINE_PORT": str(self.ports["engine"])}
        return self._python("inference.main", "inference", "the language model", more, 900.0, grace_s=30.0)

    def gateway(self, module: str, name: str) -> Component:
        engine = {"MEMLOOP_ENGINE_URL": self.environment.get("MEMLOOP_ENGINE_URL", "")}
        if not engine["MEMLOOP_ENGINE_URL"]:
            engine = {
                "MEMLOOP_ENGINE_URL": f"http://{_HOST}:{self.ports['engine']}/v1",
                "MEMLOOP_INFERENCE_URL": f"http://{_HOST}:{self.ports['inference']}",
            }
        more = {
            "MEMLOOP_REDIS_URL": self._redis_url,
            "MEMLOOP_STORE_URL": f"http://{_HOST}:{self.ports['store']}",
            "MEMLOOP_STORAGE_URL": self.environment.get("MEMLOOP_STORAGE_URL") or (self.home / "documents").as_uri(),
            **engine,
        }
        what = "the API" if name == "gateway" else "writes memories, reads in the background"
        return self._python(module, name, what, more, 180.0)

    @property
    def _redis_url(self) -> str:
        return f"redis://{_HOST}:{self.ports['redis']}/0"

    def _python(
        self, module: str, name: str, what: str, more: Mapping[str, str], timeout_s: float, grace_s: float = 10.0
    ) -> Component:
        port = self.ports[name]
        environment = {**self._for(name), "MEMLOOP_HOST": _HOST, "MEMLOOP_PORT": str(port), **more}
        command = (sys.executable, "-m", module)
        return Component(name, what, command, environment, port, http_probe(port), timeout_s, grace_s)

    def _for(self, name: str) -> dict[str, str]:
        """Return our environment without the variables that mean something else to this component."""
        engine_is_ours = not self.environment.get("MEMLOOP_ENGINE_URL")
        dropped = {"MEMLOOP_HOME", "MEMLOOP_URL", "MEMLOOP_API_KEY"}
        if name in {"gateway", "worker"} and engine_is_ours:
            dropped |= {"MEMLOOP_MODEL"}
        return {key: value for key, value in self.environment.items() if key not in dropped}


def check_ports(ports: Ports) -> None:
    """Raise CliError when a port is in use."""
    taken = ports.taken()
    if taken:
        raise CliError(
            f"these ports are in use: {', '.join(taken)}. Is another stack running? Choose other ports with --port",
        )


def free_ports(first: int, *, step: int = 10, tries: int = 50) -> Ports:
    """Return the first six consecutive free ports. Raises CliError when there are none."""
    for number in range(tries):
        ports = Ports(first + number * step)
        if not ports.taken():
            return ports
    raise CliError(f"no six free ports in a row from {first} on")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except (OSError, OverflowError):
            return True
    return False
