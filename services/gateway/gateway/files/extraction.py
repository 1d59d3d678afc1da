"""Runs the extraction of a file's text in a separate process, and kills it when it takes too long.

The CPU time that the process gets grows with the file's size: a small file that computes for ever holds its slot for
seconds. The limits are those of the process, whatever library reads the file in it.
"""

import asyncio
import math
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final, cast

from gateway.extract import Unreadable

_BLOCK_BYTES: Final = 1 << 18
_REASON_BYTES: Final = 500
_MIB: Final = 1 << 20
_UNREADABLE: Final = 3
"""How the process exits when the file has no text, and the reason stands on its standard error."""


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Limits of one extraction: address space, CPU time and wall time of its process, and bytes of text.

    ``ocr`` names the languages in which Tesseract reads pictures; empty, they are not read.
    """

    memory_bytes: int
    cpu_s: int
    wall_s: float
    text_bytes: int
    ocr: str = ""


@dataclass(frozen=True, slots=True)
class ExtractionRules:
    """The limits of every file. ``most`` are those of the largest one; a smaller one gets less CPU time.

    A file gets ``base_cpu_s`` and ``cpu_s_per_mib`` for each MiB of its size.
    """

    most: ExtractionLimits
    base_cpu_s: int
    cpu_s_per_mib: int

    def for_size(self, size_bytes: int) -> ExtractionLimits:
        """Return the limits of a file of this size."""
        cpu_s = self.base_cpu_s + math.ceil(size_bytes * self.cpu_s_per_mib / _MIB)
        return replace(self.most, cpu_s=min(cpu_s, self.most.cpu_s))


async def extracted(
    source: AsyncIterator[bytes], *, name: str, media_type: str, limits: ExtractionLimits, notes: list[str]
) -> AsyncGenerator[bytes]:
    """Yield the file's text in blocks of UTF-8, and add to ``notes`` a line on what it lacks.

    Raises Unreadable at any block, and the errors of ``source``.
    """
    text_bytes, blank = 0, True
    ends_at = asyncio.get_running_loop().time() + limits.wall_s
    async with _process(name, media_type, limits) as process:
        stdout = cast(asyncio.StreamReader, process.stdout)
        feed = asyncio.create_task(_feed(process, source))
        tail = asyncio.create_task(_tail(process))
        try:
            while block := await stdout.read(_BLOCK_BYTES):
                text_bytes += len(block)
                blank = blank and not block.strip()
                if text_bytes > limits.text_bytes:
                    raise Unreadable(f"the text is longer than {limits.text_bytes} bytes")
                yield block
            await feed
            status, errors = await process.wait(), await tail
        finally:
            for task in (feed, tail):
                task.cancel()
            await asyncio.wait({feed, tail})
    if status != 0:
        overdue = asyncio.get_running_loop().time() >= ends_at
        broken = {
            _UNREADABLE: errors,
            -signal.SIGXCPU: f"the file needs more than {limits.cpu_s} s of CPU time, the limit for its size",
            # ours, or that of a kernel without memory
            -signal.SIGKILL: f"the file needs more than {limits.wall_s:g} s"
            if overdue
            else "extraction ran out of memory",
        }
        raise Unreadable(broken.get(status, "the parser crashed"))
    if blank:
        raise Unreadable("the file contains no text (a scan?)" + (f"; {errors}" if errors else ""))
    if errors:
        notes.append(errors)


@asynccontextmanager
async def _process(name: str, media_type: str, limits: ExtractionLimits) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run the extractor with an empty environment; kill it on exit, or after ``wall_s`` seconds."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-W", "ignore", "-m", "gateway.extract"),
        *(name, media_type, str(limits.memory_bytes), str(limits.cpu_s), limits.ocr),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"LANG": "C.UTF-8"},
        start_new_session=True,
    )
    watchdog = asyncio.get_running_loop().call_later(limits.wall_s, _kill, process)
    try:
        yield process
    finally:
        watchdog.cancel()
        _kill(process)
        await process.wait()


async def _feed(process: asyncio.subprocess.Process, source: AsyncIterator[bytes]) -> None:
    """Send the source's bytes to the process until the source ends or fails, or the process exits."""
    stdin = cast(asyncio.StreamWriter, process.stdin)
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            async for block in source:
                stdin.write(block)
                await stdin.drain()
    finally:
        stdin.close()


async def _tail(process: asyncio.subprocess.Process) -> str:
    """Return the end of the process's standard error."""
    stderr, errors = cast(asyncio.StreamReader, process.stderr), b""
    while block := await stderr.read(_REASON_BYTES):
        errors = (errors + block)[-_REASON_BYTES:]
    return errors.decode("utf-8", "replace")


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
