"""Sends signals to child processes of asyncio."""

import asyncio
import os
import signal
from contextlib import suppress


def send_signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send a signal, unless the process has ended.

    The process's own methods look first whether it has ended. They may take its exit status away from asyncio, which
    then reports 255 (github.com/python/cpython/issues/87744).
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
