"""Starts the local stack for an evaluation: Redis, store, gateway and worker, with their data beside the results."""

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

_TENANT = "local"
_PORTS = range(10_000, 30_000, 10)
"""Below Linux's ports for outgoing connections; a random start keeps two evaluations apart."""


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
    async with running_stack(stages, logs=folder / "logs", say=_say):
        yield Place(f"http://127.0.0.1:{ports.gateway}", key)


def _environment(model: Address, profile: str | None, key: str) -> dict[str, str]:
    """Build the stack's environment without the operator's own MEMLOOP variables."""
    settings = {
        "MEMLOOP_ENGINE_URL": model.url,
        "MEMLOOP_MODEL": model.model,
        "MEMLOOP_ENGINE_API_KEY": model.api_key,
        "MEMLOOP_ENGINE_DIALECT": model.dialect,
        "MEMLOOP_PROFILE": profile,
        "MEMLOOP_API_KEYS": f"{_TENANT}:{hashlib.sha256(key.encode()).hexdigest()}",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOOP_", "QDRANT_"))}
    return kept | {name: value for name, value in settings.items() if value}


def _say(ready: Ready) -> None:
    print(f"{ready.component.name} is ready after {ready.seconds:.1f} s", file=sys.stderr)


def embedding_threads() -> int:
    """Return the number of cores: nothing else runs while turns are embedded."""
    return os.cpu_count() or 1
