"""Waits for an engine that was just started."""

import asyncio
from typing import Protocol

from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError
from memloop_clients import EngineClient

POLL_S = 0.5


class NotReady(RuntimeError):
    """The engine is not serving the model; the message carries the reason."""


class Lives(Protocol):
    """The part of a process that the wait needs."""

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        ...


async def wait_until_served(
    client: EngineClient, model: str, process: Lives, *, timeout_s: float, poll_s: float = POLL_S
) -> int | None:
    """Poll until the engine lists the model; return its window in tokens, if listed. Raises NotReady.

    Raises NotReady early when the process ends; the watcher of the process has the details.
    """
    last = "it has not answered yet"
    try:
        async with asyncio.timeout(timeout_s):
            while process.exit_code is None:
                try:
                    return _window(await client.get_json("models"), model)
                except (DependencyError, NotReady) as error:
                    last = str(error)
                await asyncio.sleep(poll_s)
    except TimeoutError:
        raise NotReady(f"the engine was not ready within {timeout_s:g} s: {last}") from None
    raise NotReady(f"the engine ended with status {process.exit_code} before it was ready")


def _window(listing: Json, model: str) -> int | None:
    served = listing.get("data")
    rows = [row for row in served if isinstance(row, dict)] if isinstance(served, list) else []
    for row in rows:
        if row.get("id") == model:
            window = row.get("max_model_len")
            return window if isinstance(window, int) else None
    raise NotReady(f"it serves {[row.get('id') for row in rows]}, not {model}")
