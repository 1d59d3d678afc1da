"""Abusers of one tenant, one after the other, and what innocents of another tenant notice: ``make test-hostile``.

Errors and memory are asserted. Times are printed beside their goals: they depend on what else the machine does. The
first and the last row are a control that sends nothing and takes cores: the first is what the others are compared with,
the last shows how much the machine itself varies. A percentile is of hundreds of requests.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.processes import clean_environment
from tests.gateway.rig import eventually
from tests.hostile.abusers import ABUSERS, CONTROL
from tests.hostile.innocents import Innocents, Sample
from tests.hostile.process_use import Cores, peak_bytes, reset_peak
from tests.hostile.results import Quiet, Row, report, row
from tests.hostile.stack import Stack, hostile_stack, memory_limits

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
WARM_S: Final = 5.0
QUIET_S: Final = 40.0
ABUSE_S: Final = 30.0
AFTER_S: Final = 10.0
DRAIN_S: Final = 60.0
FEWEST: Final = 300
"""Requests of a 99th percentile."""
TOO_BUSY: Final = "the machine is too busy to measure"


@dataclass(frozen=True)
class Scene:
    """The stack and the innocents at work."""

    stack: Stack
    innocents: Innocents

    async def quiet(self) -> Quiet:
        """The innocents alone."""
        await asyncio.sleep(WARM_S)
        began = time.monotonic()
        await asyncio.sleep(QUIET_S)
        stored = self.innocents.stored(began, time.monotonic())
        return Quiet.of(_since(self.innocents.samples, began), stored)

    async def beside(self, abuser: str, quiet: Quiet) -> Row:
        """The innocents beside an abuser, and for a while after."""
        processes = self.stack.ours
        for process in processes.values():
            reset_peak(process.process.pid)
        gateway = processes["gateway"].process.pid
        began, cores = time.monotonic(), Cores.of(gateway)
        ended = await _abused(abuser, self.stack.url)
        ended_at, cores = time.monotonic(), Cores.of(gateway).since(cores)
        await asyncio.sleep(AFTER_S)
        over = time.monotonic()
        await self.innocents.answered()
        samples = [sample for sample in _since(self.innocents.samples, began) if sample.due < over]
        peaks = {name: peak_bytes(process.process.pid) for name, process in processes.items()}
        backlog = await self.stack.unfinished_jobs()
        await self._calm()
        during = [sample for sample in samples if sample.due < ended_at]
        assert len(during) >= FEWEST, TOO_BUSY
        return row(
            abuser,
            ended,
            during=during,
            after=[sample for sample in samples if sample.due >= ended_at],
            stored=self.innocents.stored(began, over),
            ended_at=ended_at,
            cores=cores,
            quiet=quiet,
            peak_bytes=peaks,
            backlog=backlog,
        )

    async def _calm(self) -> None:
        """Wait until the abuser's jobs are done, but not for ever."""
        await self.stack.release_engine()

        async def drained() -> bool:
            await self.stack.release_engine()
            await asyncio.sleep(1.0)
            return await self.stack.unfinished_jobs() < 10

        try:
            await eventually(drained, timeout_s=DRAIN_S)
        except AssertionError:
            print("jobs of the abuser are left after a minute", flush=True)


def _since(samples: Sequence[Sample], began: float) -> list[Sample]:
    return [sample for sample in samples if sample.due >= began]


async def _abused(abuser: str, url: str) -> Mapping[str, int]:
    """Run the generator to its end; how its requests ended."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.hostile.generator", abuser, url, str(ABUSE_S)),
        env=clean_environment(),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, abuser
    return json.loads(output)


async def test_innocents_notice_no_abuser(tmp_path: Path) -> None:
    async with hostile_stack(tmp_path) as stack:
        innocents, rows = Innocents(stack.url), list[Row]()
        async with innocents.at_work():
            scene = Scene(stack, innocents)
            quiet = await scene.quiet()
            assert quiet.errors == 0, TOO_BUSY
            control = await scene.beside(CONTROL, quiet)
            assert control.errors == 0, TOO_BUSY
            quiet = replace(quiet, busy_p99_s=control.p99_ms / 1000)
            rows.append(control)
            for abuser in (*ABUSERS, CONTROL):
                rows.append(await scene.beside(abuser, quiet))
                print(rows[-1], flush=True)
    rows[-1] = replace(rows[-1], abuser=f"{CONTROL} again")
    report(rows, quiet, memory_limits())
    limits = memory_limits()
    assert {each.abuser: each.faults for each in rows if each.errors} == {}
    assert [each.abuser for each in rows for name, peak in each.peak_mb.items() if peak * 1e6 >= limits[name]] == []
