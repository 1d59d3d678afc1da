"""Signals to child processes: each gets those that it was sent, and its exit status is its own."""

import asyncio
import signal

from inference.process import send_signal


async def test_a_process_that_ends_while_it_gets_signals_keeps_its_exit_status() -> None:
    for _ in range(20):
        process = await asyncio.create_subprocess_exec("sh", "-c", "exit 7")
        while process.returncode is None:
            send_signal(process, signal.SIGCONT)
            await asyncio.sleep(0)
        assert process.returncode == 7
