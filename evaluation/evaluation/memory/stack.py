"""Starts the local stack for an evaluation, or its store alone, with the data beside the results."""

import hashlib
import os
import random
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from evaluation.memory.endpoint import Address
from memloop_cli.stack.local import free_ports, local_stages
from memloop_cli.stack.running import Ready, running_stack
from memloop_clients import StoreClient

_TENANT = "local"
_PORTS = range(10_000, 30_000, 10)
"""Below Linux's ports for outgoing connections; a random start keeps two evaluations apart."""

_REDIS_AND_STORE = 2
"""The first stages of a local stack."""
_NO_ENGINE = "http://127.0.0.1:9"
"""Given, so that the stack has no engine of its own."""


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway's base URL and the key that it accepts."""

    url: str
    api_key: str | None


@asynccontextmanager
async def own_stack(folder: Path, model: Address, *, profile: str | None = None) -> AsyncGenerator[Place]:
    """Start a stack on free ports and stop it on exit.

    Data that an earlier run stored in the folder is reused. Raises CliError when a process does not start.
    """
    key, ports = secrets.token_hex(32), free_ports(random.choice(_PORTS))
    stages = local_stages(folder, ports, _environment(model, profile, key))
    async with running_stack(stages, logs=folder / "logs", report=_report):
        yield Place(f"http://127.0.0.1:{ports.gateway}", key)


@asynccontextmanager
async def own_store(folder: Path) -> AsyncGenerator[StoreClient]:
    """Start a store and its Redis on free ports, without a key, and stop them on exit. Raises CliError."""
    ports = free_ports(random.choice(_PORTS))
    stages = local_stages(folder, ports, _kept_environment() | {"MEMLOOP_ENGINE_URL": _NO_ENGINE})[:_REDIS_AND_STORE]
    async with (
        running_stack(stages, logs=folder / "logs", report=_report),
        StoreClient(f"http://127.0.0.1:{ports.by_name['store']}") as store,
    ):
        yield store


def _environment(model: Address, profile: str | None, key: str) -> dict[str, str]:
    settings = {
        "MEMLOOP_ENGINE_URL": model.url,
        "MEMLOOP_MODEL": model.model,
        "MEMLOOP_ENGINE_API_KEY": model.api_key,
        "MEMLOOP_ENGINE_DIALECT": model.dialect,
        "MEMLOOP_PROFILE": profile,
        "MEMLOOP_API_KEYS": f"{_TENANT}:{hashlib.sha256(key.encode()).hexdigest()}",
    }
    return _kept_environment() | {name: value for name, value in settings.items() if value}


def _kept_environment() -> dict[str, str]:
    """Return the environment without the operator's own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOOP_", "QDRANT_"))}


def _report(ready: Ready) -> None:
    print(f"{ready.component.name} is ready after {ready.seconds:.1f} s", file=sys.stderr)


def embedding_threads() -> int:
    """Return the number of cores: nothing else runs while turns are embedded."""
    return os.cpu_count() or 1
