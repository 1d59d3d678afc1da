"""Checks a running engine: its prefix cache, its gauges, and whether it stops for a disconnected client."""

import asyncio
import time
from contextlib import aclosing
from dataclasses import asdict

from inference.conformance.probe import Probe, Unmet, expect
from inference.metrics import engine_load

_STOP_S = 2.0
_POLL_S = 0.05
_LONG_REPLY = 1024


async def a_repeated_prefix_is_cached(probe: Probe) -> str:
    """Require the second request of a long prompt to compute fewer tokens and to report that."""
    text = "The weather was fine. " * 40
    answers = [await probe.chat(text, max_tokens=1) for _ in range(2)]
    usage = answers[1].get("usage")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    expect(isinstance(cached, int) and cached > 0, f"cached_tokens is {cached!r}")
    return f"{cached} tokens"


async def gauges_are_told(probe: Probe) -> str:
    """Require gauges of running and waiting requests, cache and generated tokens, for liveness and autoscaling."""
    load = asdict(engine_load(await probe.exposition()))
    missing = sorted(name for name, value in load.items() if value is None)
    expect(not missing, f"no metrics for {', '.join(missing)}")
    return "3 gauges, 1 counter"


async def a_stream_that_nobody_reads_stops(probe: Probe) -> str:
    """Require the engine to stop within 2 s after its stream is closed."""
    async with aclosing(probe.stream(max_tokens=_LONG_REPLY, ignore_eos=True)) as events:
        expect(await anext(events, None), "the stream is empty")
    return await _seconds_until_idle(probe)


async def an_answer_that_nobody_awaits_stops(probe: Probe) -> str:
    """Require the same after the client of a JSON response disconnects."""
    task = asyncio.create_task(probe.chat(max_tokens=_LONG_REPLY, ignore_eos=True))
    await asyncio.sleep(0.2)
    task.cancel()
    await asyncio.wait({task})
    return await _seconds_until_idle(probe)


async def _seconds_until_idle(probe: Probe) -> str:
    began = time.monotonic()
    while (passed_s := time.monotonic() - began) < _STOP_S:
        if engine_load(await probe.exposition()).running == 0:
            return f"{passed_s:.1f} s"
        await asyncio.sleep(_POLL_S)
    raise Unmet(f"it still runs after {_STOP_S:g} s")
