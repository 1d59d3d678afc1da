"""Runs the extraction of a file's text in a separate process, and kills it when it takes too long."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, cast

from gateway.files import extract
from gateway.files.extract import UNREADABLE, Unreadable

_BLOCK_BYTES: Final = 1 << 18
_REASON_BYTES: Final = 500
_TOO_LONG: Final = "extraction timed out"
_DEATHS: Final = {-signal.SIGXCPU: _TOO_LONG, -signal.SIGKILL: _TOO_LONG, -signal.SIGSEGV: "the parser crashed"}


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Limits of one extraction: address space, CPU time and wall time of its process, and bytes of text."""

    memory_bytes: int
    cpu_s: int
    wall_s: float
    text_bytes: int


async def extracted(
    source: AsyncIterator[bytes], *, name: str, media_type: str, limits: ExtractionLimits
) -> AsyncGenerator[bytes]:
    """Yield the file's text in blocks of UTF-8. Raises Unreadable at any block, and the errors of ``source``."""
    text_bytes, blank = 0, True
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
            _check_end(await process.wait(), await tail)
        finally:
            for task in (feed, tail):
                task.cancel()
            await asyncio.wait({feed, tail})
    if blank:
        raise Unreadable("the file contains no text (a scan?)")


@asynccontextmanager
async def _process(name: str, media_type: str, limits: ExtractionLimits) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run the extractor with an empty environment; kill it on exit, or after ``wall_s`` seconds."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-W", "ignore", extract.__file__),  # by its path: the package would import the gateway
        *(name, media_type, str(limits.memory_bytes), str(limits.cpu_s)),
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


def _check_end(status: int, errors: str) -> None:
    if status == UNREADABLE:
        raise Unreadable(errors)
    if status != 0:
        raise Unreadable(_DEATHS.get(status, "the parser crashed"))


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
