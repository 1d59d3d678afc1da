"""The local stack's components, in the order of their start."""

import secrets
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memloop_cli.errors import CliError
from memloop_cli.stack.component import Component, http_probe, redis_probe
from memloop_cli.stack.redis import find_redis, redis_command

_HOST = "127.0.0.1"
_ENGINE_START_S: Final = 900.0
"""For an engine, and for gateway and worker, which start beside it: the worker is ready once an engine answers."""
READER_MODEL: Final = "MEMLOOP_READER_MODEL"
READER_PROFILE: Final = "MEMLOOP_READER_PROFILE"
MODEL_PATH: Final = "MEMLOOP_MODEL_PATH"
"""The folder of the first model, in the place of its row's."""
STORE_KEY: Final = "MEMLOOP_STORE_KEY"
NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"
SAFE_PATH: Final = "PYTHONSAFEPATH"
"""Keeps the folder of the call off the path of modules, and with it the user's ``random.py``."""
GIVEN_ENGINES: Final = ("MEMLOOP_ENGINE_URL", "MEMLOOP_MODELS")
_OWN_PORT: Final = (
    *("MEMLOOP_TLS_CERT", "MEMLOOP_TLS_KEY", "MEMLOOP_TLS_CLIENT_CA"),
    *("MEMLOOP_UNIX_SOCKET", "MEMLOOP_METRICS_PORT"),
)
"""What one process of the environment's may have, and not four of them: the stack speaks plain HTTP on loopback."""
_MODELS_FILE: Final = """# Written by `memloop up`.
roles = {{ writer = "writer", reader = "reader", chat = "writer" }}

[models.writer]
engine_url = "http://{host}:{engine}/v1"
inference_url = "http://{host}:{inference}"

[models.reader]
engine_url = "http://{host}:{reader_engine}/v1"
inference_url = "http://{host}:{reader}"
"""
Stages = tuple[tuple[Component, ...], ...]
"""Components of one stage start together; a stage starts when the one before it is ready."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Six consecutive ports, the gateway's first; eight with a model of its own for long reads."""

    gateway: int
    with_reader: bool = False

    @property
    def by_name(self) -> dict[str, int]:
        """Each component's port; ``engine`` is the engine's own, behind ``inference``."""
        names = ("gateway", "store", "inference", "engine", "worker", "redis")
        names += ("reader", "reader-engine") if self.with_reader else ()
        return {name: self.gateway + number for number, name in enumerate(names)}

    def taken(self) -> list[str]:
        """Return the ports in use, as ``name port``."""
        return [f"{name} {port}" for name, port in self.by_name.items() if _listens(port)]


def ports_from(first: int, environment: Mapping[str, str]) -> Ports:
    """Return the ports that the stack of this environment needs."""
    return Ports(first, with_reader=bool(environment.get(READER_MODEL)))


def local_stages(home: Path, ports: Ports, environment: Mapping[str, str]) -> Stages:
    """Build the stack for this machine. With an engine's URL or a models file set, it starts no engine.

    All but Redis start at once: gateway and worker wait for what is not there yet, and take less time than an engine.

    ``MEMLOOP_READER_MODEL`` starts a second one, for long reads. Raises CliError when there is no Redis to start, or
    when this variable stands beside given engines.
    """
    stack = _LocalStack(home, ports.by_name, environment)
    given = [name for name in GIVEN_ENGINES if environment.get(name)]
    if given and ports.with_reader:
        raise CliError(f"{READER_MODEL} starts a second local engine; with {given[0]}, name it in a models file")
    engines = () if given else (stack.inference(), stack.reader()) if ports.with_reader else (stack.inference(),)
    gateways = stack.gateway("gateway.main", "gateway"), stack.gateway("gateway.worker", "worker")
    return (stack.redis(),), (*engines, stack.store(), *gateways)


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
            STORE_KEY: self.store_key,
            "HF_HUB_OFFLINE": self.environment.get("HF_HUB_OFFLINE", "1"),
        }
        return self._python("memory_store.main", "store", "memories and their search", more, 180.0)

    def inference(self) -> Component:
        more = {"MEMLOOP_ENGINE_PORT": str(self.ports["engine"])}
        if "reader" in self.ports:
            more["MEMLOOP_SERVE_NAME"] = "writer"
        return self._python("inference.main", "inference", "the language model", more, _ENGINE_START_S, grace_s=30.0)

    def reader(self) -> Component:
        more = {
            "MEMLOOP_ENGINE_PORT": str(self.ports["reader-engine"]),
            "MEMLOOP_SERVE_NAME": "reader",
            "MEMLOOP_MODEL": self.environment[READER_MODEL],
            "MEMLOOP_PROFILE": self.environment.get(READER_PROFILE, ""),
            MODEL_PATH: "",
        }
        return self._python("inference.main", "reader", "the model of long reads", more, _ENGINE_START_S, grace_s=30.0)

    def gateway(self, module: str, name: str) -> Component:
        more = {
            "MEMLOOP_REDIS_URL": self._redis_url,
            "MEMLOOP_STORE_URL": f"http://{_HOST}:{self.ports['store']}",
            STORE_KEY: self.store_key,
            "MEMLOOP_FETCH_URLS": self.environment.get("MEMLOOP_FETCH_URLS") or "true",
            "MEMLOOP_STORAGE_URL": self.environment.get("MEMLOOP_STORAGE_URL") or (self.home / "documents").as_uri(),
            **self._engines(),
        }
        what = "the API" if name == "gateway" else "writes memories, reads in the background"
        return self._python(module, name, what, more, _ENGINE_START_S)

    def _engines(self) -> dict[str, str]:
        if "reader" in self.ports:
            return {"MEMLOOP_MODELS": str(self._models_file())}
        if any(self.environment.get(name) for name in GIVEN_ENGINES):
            return {}
        return {
            "MEMLOOP_ENGINE_URL": f"http://{_HOST}:{self.ports['engine']}/v1",
            "MEMLOOP_INFERENCE_URL": f"http://{_HOST}:{self.ports['inference']}",
        }

    def _models_file(self) -> Path:
        ports = {name.replace("-", "_"): port for name, port in self.ports.items()}
        path = self.home / "models.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_MODELS_FILE.format(host=_HOST, **ports), "utf-8")
        return path

    @property
    def store_key(self) -> str:
        """The store's key: the given one, else that of this stack, which is made at its first start."""
        if given := self.environment.get(STORE_KEY):
            return given
        self.home.mkdir(parents=True, exist_ok=True)
        kept = self.home / "store-key"
        if not kept.exists():
            kept.touch(mode=0o600)
            kept.write_text(secrets.token_urlsafe(32))
        return kept.read_text()

    @property
    def _redis_url(self) -> str:
        return f"redis://{_HOST}:{self.ports['redis']}/0"

    def _python(
        self, module: str, name: str, what: str, more: Mapping[str, str], timeout_s: float, grace_s: float = 10.0
    ) -> Component:
        port = self.ports[name]
        environment = {**self._for(name), SAFE_PATH: "1", "MEMLOOP_HOST": _HOST, "MEMLOOP_PORT": str(port), **more}
        command = (sys.executable, "-m", module)
        return Component(name, what, command, environment, port, http_probe(port), timeout_s, grace_s)

    def _for(self, name: str) -> dict[str, str]:
        """Return our environment without the variables that mean something else to this component.

        Images of Python often set that no bytecode is written: each start would compile the engine's packages again,
        for a minute.
        """
        engine_is_ours = not any(self.environment.get(name) for name in GIVEN_ENGINES)
        dropped = {
            *_OWN_PORT,
            "MEMLOOP_HOME",
            "MEMLOOP_URL",
            "MEMLOOP_API_KEY",
            READER_MODEL,
            READER_PROFILE,
            NO_BYTECODE,
        }
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
