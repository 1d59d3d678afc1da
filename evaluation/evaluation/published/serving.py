"""Serves a model by the launcher, as long as its table is made."""

import asyncio
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from memloop_cli.stack.component import Component, http_probe
from memloop_cli.stack.local import NO_BYTECODE, SAFE_PATH, free_ports
from memloop_cli.stack.running import Ready, running_stack
from memloop_clients.inference import InferenceClient

_Result = TypeVar("_Result")
_PORTS: Final = range(10_000, 30_000, 10)
_START_S: Final = 3600.0
"""For an engine that also downloads its weights."""
_GRACE_S: Final = 30.0
_DEFAULTS: Final = "MEMLOOP_SERVE_GENERATION_DEFAULTS"
_KEPT: Final = ("MEMLOOP_SERVE_", "MEMLOOP_ENGINE", "MEMLOOP_MODELS_FILE", "MEMLOOP_MODEL_PATH")
_ELSEWHERE: Final = ("MEMLOOP_ENGINE_URL", "MEMLOOP_ENGINE_PORT", "MEMLOOP_ENGINE_HOST")


@dataclass(frozen=True, slots=True)
class Served:
    """A served model: its engine's URL ending in /v1, its id there, its window and its ``tokenizer.json``."""

    url: str
    model: str
    window_tokens: int
    tokenizer_json: bytes


def while_served(model: str, folder: Path, work: Callable[[Served], _Result], *, profile: str) -> _Result:
    """Start the launcher with the model, run the work in a thread, and stop it. Raises CliError when it dies.

    The environment's ``MEMLOOP_SERVE_…`` apply. Sampling defaults are the checkpoint's, as of a plain ``vllm serve``.
    """
    return asyncio.run(_while_served(model, folder, work, profile))


async def _while_served(model: str, folder: Path, work: Callable[[Served], _Result], profile: str) -> _Result:
    ports = free_ports(random.choice(_PORTS)).by_name
    own = {
        name: value
        for name, value in os.environ.items()
        if name != NO_BYTECODE and (not name.startswith("MEMLOOP_") or name.startswith(_KEPT))
    }
    environment = {
        _DEFAULTS: "checkpoint",
        **{name: value for name, value in own.items() if name not in _ELSEWHERE},
        SAFE_PATH: "1",
        "MEMLOOP_MODEL": model,
        "MEMLOOP_PROFILE": profile,
        "MEMLOOP_HOST": "127.0.0.1",
        "MEMLOOP_PORT": str(ports["inference"]),
        "MEMLOOP_ENGINE_PORT": str(ports["engine"]),
    }
    port, command = ports["inference"], (sys.executable, "-m", "inference.main")
    launcher = Component("inference", model, command, environment, port, http_probe(port), _START_S, _GRACE_S)
    async with running_stack(((launcher,),), logs=folder / "logs", report=_report) as stack:
        client = InferenceClient(f"http://127.0.0.1:{port}")
        try:
            served, tokenizer = await client.model(), await client.tokenizer()
        finally:
            await client.close()
        found = Served(served.engine_url, served.id, served.max_model_len, tokenizer)
        return await stack.unless_one_dies(asyncio.to_thread(work, found))


def _report(ready: Ready) -> None:
    print(f"{ready.component.what} is ready after {ready.seconds:.1f} s", file=sys.stderr)
