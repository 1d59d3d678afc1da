"""``memloop up`` with everything real: Redis, store, vLLM with the tiny model, gateway, worker."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import engine_process
from tests.fakes.ports import free_port
from tests.fakes.processes import end, kill_pid, wait_for
from tests.stack.local_stack import REPOSITORY, START_TIMEOUT_S, LocalStack

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    started = LocalStack(tmp_path_factory.mktemp("home"), MEMLOOP_MODEL="memloop-tiny")
    result = started.up()
    assert result.returncode == 0, result.stdout + result.stderr
    yield started
    started.memloop("down")


def test_a_second_conversation_recalls_the_first(stack: LocalStack) -> None:
    told = stack.memloop("chat", "--user", "ann", "--no-thinking", typed="My locker code is 482.\n")
    assert "stored   The locker code of the user is 482." in told.stdout
    asked = stack.memloop("chat", "--user", "ann", "--no-thinking", typed="What is my locker code?\n")
    assert "assistant  Your locker code is 482." in asked.stdout
    assert "recalled The locker code of the user is 482." in asked.stdout


def test_another_user_recalls_nothing_of_it(stack: LocalStack) -> None:
    assert "bob has no memories" in stack.memloop("memory", "list", "--user", "bob").stdout


def test_a_document_is_read_to_its_end(stack: LocalStack, tmp_path: Path) -> None:
    prose = "The whale swam on, and the ship went after it through the night. " * 40
    document = tmp_path / "document.txt"
    document.write_text(f"{prose}The vault code of Marta is 731. {prose}")
    result = stack.memloop("read", str(document), "What is the vault code of Marta?")
    assert result.returncode == 0, result.stderr
    assert "answer  731" in result.stdout


def test_a_second_stack_in_the_same_folder_is_refused(stack: LocalStack) -> None:
    result = stack.up()
    assert result.returncode == 1
    assert "a stack runs here already" in result.stderr


def test_a_killed_worker_ends_the_stack_and_leaves_nothing_behind(stack: LocalStack) -> None:
    """The module's last use of the stack."""
    worker = next(pid for pid in stack.pids() if _command(pid).endswith("-m gateway.worker") and not _is_guard(pid))
    kill_pid(worker)
    wait_for(lambda: stack.home.running() is None, "the stack's end")
    wait_for(lambda: not stack.pids(), "the end of all its processes")
    assert "worker died with status 137" in (stack.home.logs / "stack.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_stack_in_the_foreground_ends_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    stack, engine_port = LocalStack(tmp_path / "home"), free_port()
    engine = subprocess.Popen([engine_process.__file__, "--port", str(engine_port)], env=stack.environment())
    up = subprocess.Popen(
        [sys.executable, "-m", "memloop_cli", "up", "--no-check", "--port", str(free_port(*range(1, 6)))],
        env=stack.environment() | {"MEMLOOP_ENGINE_URL": f"http://127.0.0.1:{engine_port}/v1"},
    )
    wait_for(lambda: _is_ready(stack), "the stack", timeout_s=START_TIMEOUT_S)
    up.send_signal(number)
    assert up.wait(timeout=240) == 0
    end(engine)
    wait_for(lambda: len(stack.pids()) <= 1, "the end of all but the fake engine's worker")
    for pid in stack.pids():
        kill_pid(pid)


@pytest.mark.slow
def test_the_demo_of_the_tiny_model_gets_right_what_it_was_trained_on(tmp_path: Path) -> None:
    demo = _demo(LocalStack(tmp_path / "home", MEMLOOP_MODEL="memloop-tiny"), "--full")
    assert "facts stored 1 of 1 by the expected word, answered later 1 of 1 by the expected word" in demo
    assert "One fact each, memagent: 10 of 10 right" in demo
    assert "memagent: 0 of 3 right" in demo
    assert "memreread: 3 of 3 right" in demo


@pytest.mark.slow
def test_the_demo_of_the_small_model_ends_with_its_score(tmp_path: Path) -> None:
    demo = _demo(LocalStack(tmp_path / "home", MEMLOOP_MODEL="memloop-small"))
    assert re.search(r"facts stored \d of 3 by .*, answered later \d of 3 by .*, small talk stored \d of 1", demo)
    assert re.search(r"What really happens, memagent: \d of 2 right", demo)


def _demo(stack: LocalStack, *arguments: str) -> str:
    demo = subprocess.run(
        [sys.executable, "-m", "memloop_cli", "demo", *arguments],
        env=stack.environment() | {"COLUMNS": "200"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert not stack.pids()
    return demo.stdout


def _is_ready(stack: LocalStack) -> bool:
    note = stack.home.running()
    return note is not None and note.status == "ready"


def _command(pid: int) -> str:
    """Its command line; empty when it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def _is_guard(pid: int) -> bool:
    return "guard.py" in _command(pid)
