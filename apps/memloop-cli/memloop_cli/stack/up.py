"""``memloop up`` and ``memloop down``."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from memloop_cli.errors import CliError
from memloop_cli.home import Holder, Home, StackNote
from memloop_cli.stack.component import console_address
from memloop_cli.stack.local import SAFE_PATH, Ports, check_ports, local_stages
from memloop_cli.stack.running import Ready, running_stack
from memloop_cli.stack.small_model import with_small_model

_STOP_TIMEOUT_S = 90.0
_POLL_S = 0.1


async def stay_up(home: Home, ports: Ports, environment: Mapping[str, str], console: Console) -> None:
    """Run the stack until Ctrl-C or SIGTERM, or until a component dies (CliError)."""
    try:
        await _run_stack(home, ports, environment, console)
    except asyncio.CancelledError:
        console.print("The stack is stopped.")


async def _run_stack(home: Home, ports: Ports, environment: Mapping[str, str], console: Console) -> None:
    note = StackNote(pid=os.getpid(), status="starting", url=f"http://127.0.0.1:{ports.gateway}", ports=ports.by_name)
    stop_on_sigterm()
    os.umask(0o077)
    with home.held(note) as holder:
        check_ports(ports)
        environment = await with_small_model(environment, console)
        console.print(f"Starting the local stack in {home.folder} (logs in {home.logs})")
        stages = local_stages(home.folder, ports, environment)
        async with running_stack(stages, logs=home.logs, report=printer(console)) as stack:
            _print_ready(holder, note, console, page=await console_address(note.url))
            try:
                await stack.unless_one_dies(asyncio.Event().wait())
            except asyncio.CancelledError:
                console.print("Stopping …")
                raise


def printer(console: Console) -> Callable[[Ready], None]:
    """Prints one line per component that becomes ready."""

    def print_ready(ready: Ready) -> None:
        part = ready.component
        console.print(f"[green]ready[/] {part.name:<10} {part.what:<40} port {part.port:<6} {ready.seconds:5.1f} s")

    return print_ready


def stop_on_sigterm() -> None:
    """Make SIGTERM cancel the current task, as asyncio does on Ctrl-C, so that everything it opened is closed."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def up_detached(home: Home, ports: Ports, environment: Mapping[str, str], console: Console) -> None:
    """Start ``memloop up`` as a separate process and wait until its stack is ready. Raises CliError."""
    if home.running():
        raise CliError("a stack runs here already: `memloop down` stops it")
    check_ports(ports)
    os.umask(0o077)
    home.logs.mkdir(parents=True, exist_ok=True)
    log = home.logs / "stack.log"
    where = ("--home", str(home.folder), "--port", str(ports.gateway))
    command = [sys.executable, "-m", "memloop_cli", "up", "--no-check", *where]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - this very program
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**environment, SAFE_PATH: "1"},
        )
    try:
        _follow(log, process, home, console)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise


def _follow(log: Path, process: "subprocess.Popen[bytes]", home: Home, console: Console) -> None:
    """Copy the log to the console until the stack is ready. Raises CliError when its process ends first."""
    with log.open(encoding="utf-8") as lines:
        while True:
            ended = process.poll() is not None
            note = home.running()
            console.print(lines.read(), end="", highlight=False, markup=False)
            if ended:
                raise CliError(f"the stack did not start; see {home.logs}", code=process.returncode)
            if note and note.status == "ready":
                console.print(f"The stack runs in the background (pid {process.pid}). `memloop down` stops it.")
                return
            time.sleep(_POLL_S)


def down(home: Home, console: Console) -> None:
    """Stop the running stack and wait until it has ended. Raises CliError when none runs."""
    note = home.running()
    if note is None or not note.pid:
        raise CliError(f"no stack runs in {home.folder}")
    os.kill(note.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while home.running():
        if time.monotonic() > deadline:
            raise CliError(f"the stack (pid {note.pid}) does not end; see {home.logs}")
        time.sleep(_POLL_S)
    console.print("The stack is stopped.")


def _print_ready(holder: Holder, note: StackNote, console: Console, *, page: str | None) -> None:
    console.print(f"[bold]The stack is ready:[/] {note.url}/v1  (OpenAI-compatible; Ctrl-C or `memloop down` stops it)")
    console.print('Try: memloop chat --user me   or   memloop read FILE "question"')
    if page is not None:
        console.print(f"[bold]Look at memories and reads:[/] {page}   The API: {note.url}/docs")
    holder.write(note.model_copy(update={"status": "ready"}))  # last: whoever waits for it copies the lines above
