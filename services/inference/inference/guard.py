"""A small process between a supervisor and its child that never leaves a process of the child behind.

``python guard.py --grace 20 -- COMMAND...`` starts the command in a process group of its own and ends with its
status. It ends the whole family, first by SIGTERM and after ``--grace`` seconds by SIGKILL, when one of these happens
(as a "child subreaper" it also adopts grandchildren that changed their group):

* this process receives SIGTERM or SIGINT,
* the supervisor is gone: standard input is a pipe from it, and the pipe closes,
* the command itself is gone: vLLM's EngineCore and workers would outlive a killed API server.

If this process itself is killed, the kernel kills the command (PR_SET_PDEATHSIG). Nothing but the standard library is
imported, so that it starts in milliseconds. Source: prctl(2), proc(5).
"""

import argparse
import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.05
_ORPHANS_GRACE_S = 3.0
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LINUX = sys.platform == "linux"


def main() -> int:
    """Run the command of the argument list and return its status, or 128 + signal as a shell does."""
    parser = argparse.ArgumentParser(prog="inference.guard")
    parser.add_argument("--grace", type=float, default=20.0, help="seconds between SIGTERM and SIGKILL")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # A file descriptor that becomes readable when a signal to stop or of a child's death arrives
    wake, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable)
    for number in (*_STOPS, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: None)
    child = _start(arguments.command)
    supervisor = sys.stdin.fileno()
    while child.poll() is None:
        ready, _, _ = select.select([wake, supervisor], [], [])
        if supervisor in ready and not os.read(supervisor, 4096):
            break
        if wake in ready and set(os.read(wake, 64)) & set(_STOPS):
            break
    end_family(child, grace_s=arguments.grace)
    # The interpreter restores the default handlers before it ends, and a second SIGTERM would replace the status
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
    code = child.wait()
    return 128 - code if code < 0 else code


def _start(command: list[str]) -> "subprocess.Popen[bytes]":
    here = os.getpid()

    def die_with_parent() -> None:
        """Ask the kernel, in the new process, to kill it together with this one."""
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != here:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        return subprocess.Popen(  # noqa: S603 - the supervisor's own command
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_parent
        )
    except OSError as error:
        print(f"cannot start {command[0]}: {error}", file=sys.stderr, flush=True)
        sys.exit(127)


def end_family(child: "subprocess.Popen[bytes]", *, grace_s: float) -> None:
    """Terminate the command first, then its descendants, then kill those that remain."""
    _signal(child.pid, signal.SIGTERM)
    _until(lambda: child.poll() is not None, grace_s)
    _signal_all(child.pid, signal.SIGTERM)
    _until(lambda: not _alive(child), min(grace_s, _ORPHANS_GRACE_S))
    while _alive(child):
        _signal_all(child.pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def _until(done: Callable[[], bool], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not done() and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _signal_all(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for pid in _children():
        _signal(pid, number)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _alive(child: "subprocess.Popen[bytes]") -> bool:
    """Return whether any process of the family still runs; reaps those that have ended."""
    running = child.poll() is None
    for pid in _children():
        if pid != child.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, 0)
        running = True
    return running or bool(_children())


def _children() -> list[int]:
    """Return the pids of this process's children, adopted ones included; empty if the kernel does not list them."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    try:
        return [int(pid) for pid in path.read_text().split()]
    except OSError:
        return []


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
