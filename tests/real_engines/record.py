"""``python -m tests.real_engines.record`` records what real programs answer, for the stand-ins of other tests."""

import asyncio
import tempfile
from pathlib import Path

from tests.fakes.recorded_answers import answers_of, write
from tests.real_engines.programs import PROGRAMS, RECORDED


async def _record() -> None:
    for name, program in RECORDED.items():
        with tempfile.TemporaryDirectory() as folder:
            async with PROGRAMS[program](Path(folder)) as running:
                write(name, running.version, await answers_of(running.engine_url.removesuffix("/v1")))
        print(name, running.version)


if __name__ == "__main__":
    asyncio.run(_record())
