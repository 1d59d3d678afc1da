"""Runs a supervised child process through the guard; streams its log and keeps the last lines."""

import asyncio
import os
import re
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from inference import guard


def send_signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send a signal, unless the process has ended.

    The process's own methods look first whether it has ended. They may take its exit status away from asyncio, which
    then reports 255 (github.com/python/cpython/issues/87744).
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


_TAIL_LINES = 40
_OUT_OF_MEMORY = re.compile(
    r"out of memory|OutOfMemory|No available memory for the cache|larger than the available KV cache|Not enough memory"
    r"|is less than requested memory"
    r"|Cannot allocate memory|can't allocate memory",
    re.IGNORECASE,
)
"""Messages of torch, system calls, vLLM and SGLang for lack of memory; long tracebacks follow them."""
_LINE_BYTES = 1 << 20
_FORCE_S = 8.0


class ChildProcess:
    """One child behind ``inference.guard``; neither it nor its own children outlive this process."""

    def __init__(self, process: asyncio.subprocess.Process, on_line: Callable[[str], None], *, grace_s: float) -> None:
        self._process = process
        self._grace_s = grace_s
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self.out_of_memory: str | None = None
        self._reader = asyncio.create_task(self._read(on_line))

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        on_line: Callable[[str], None],
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        grace_s: float = 20.0,
    ) -> "ChildProcess":
        """Start the command, with our environment unless another is given; ``on_line`` gets every line it prints."""
        guarded = (sys.executable, "-I", "-S", guard.__file__, "--grace", str(grace_s), "--", *command)
        process = await asyncio.create_subprocess_exec(
            *guarded,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            cwd=folder,
            limit=_LINE_BYTES,
            start_new_session=True,
        )
        return cls(process, on_line, grace_s=grace_s)

    @property
    def pid(self) -> int:
        """Return the guard's pid."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; 128 + n after a death by signal n."""
        return self._process.returncode

    def last_words(self, lines: int = _TAIL_LINES) -> str:
        return "\n".join(list(self._tail)[-lines:]) or "(it printed nothing)"

    async def wait(self) -> int:
        """Wait until the child has ended and its output is read; return its exit code."""
        code = await self._process.wait()
        await asyncio.shield(self._reader)
        return code

    async def stop(self) -> int:
        """End the whole family by SIGTERM, after the grace period by SIGKILL. Idempotent."""
        send_signal(self._process, signal.SIGTERM)
        try:
            async with asyncio.timeout(self._grace_s + _FORCE_S):
                return await self.wait()
        except TimeoutError:
            send_signal(self._process, signal.SIGKILL)
            return await self._process.wait()

    async def _read(self, on_line: Callable[[str], None]) -> None:
        output = self._process.stdout
        if output is None:
            return
        while True:
            try:
                line = await output.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                line = error.partial
            except asyncio.LimitOverrunError as error:  # a line longer than the buffer comes in parts
                line = await output.read(max(error.consumed, 1))
            if not line:
                return
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            self._tail.append(text)
            if self.out_of_memory is None and _OUT_OF_MEMORY.search(text):
                self.out_of_memory = text
            with suppress(OSError):  # a log on a full disk: a child whose output nobody reads would wait for ever
                on_line(text)
