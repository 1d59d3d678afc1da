"""Measures what a request costs a gateway's process."""

from collections.abc import Sequence
from typing import Final

from benchmarks.gateway.load import closed_loop
from benchmarks.gateway.servers import Server

_WARM_UP: Final = 50


async def cost_ms(gateway: Server, asked: Sequence[bytes], *, concurrency: int, events: int) -> float:
    """Return the gateway's CPU milliseconds per request, after a few that warm it up.

    Raises SystemExit when a request fails; an answer of fewer ``events`` is a failure.
    """
    await closed_loop(gateway.port, asked[:_WARM_UP], concurrency=concurrency)
    before = gateway.cpu_s()
    load = await closed_loop(gateway.port, asked, concurrency=concurrency)
    used_s = gateway.cpu_s() - before
    if failures := load.failures(events=events):
        raise SystemExit(f"{failures} of {len(asked)} requests failed")
    return 1000 * used_s / len(asked)
