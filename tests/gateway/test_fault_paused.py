"""A Redis or a memory store that stands still for 2.5 s, as on a disk that is late: requests are slow, none fails."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Final

import pytest

from tests.hostile.innocents import Innocents
from tests.hostile.stack import hostile_stack

pytestmark = pytest.mark.timeout(300)
PAUSE_S: Final = 2.5
STEADY_S: Final = 2.0


@pytest.mark.parametrize("paused", ["redis", "store"])
async def test_no_request_fails_because_a_dependency_stands_still_for_a_while(tmp_path: Path, paused: str) -> None:
    async with hostile_stack(tmp_path) as stack:
        pid = stack.redis.process.pid if paused == "redis" else stack.ours["store"].process.pid
        innocents = Innocents(stack.url)
        async with innocents.at_work():
            await asyncio.sleep(STEADY_S)
            began = time.monotonic()
            os.kill(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(PAUSE_S)
            finally:
                os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(STEADY_S)
            await innocents.answered()

    during = [sample for sample in innocents.samples if began <= sample.due < began + PAUSE_S]
    assert [(sample.kind, sample.fault) for sample in innocents.samples if sample.fault] == []
    assert {sample.kind for sample in during} == {"chat", "add", "search", "read"}
    assert max(sample.took_s for sample in during) > PAUSE_S / 2
