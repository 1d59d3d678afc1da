"""The profile ``cpu`` with two engines behind one name: both work, and the death of one costs no client a chat."""

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final

import pytest

from tests.deploy.stack.chats import Chatter, chat, counted
from tests.deploy.stack.compose import ComposeStack, smoke
from tests.deploy.stack.docker import docker
from tests.deploy.stack.writers import ask

pytestmark = pytest.mark.containers

MODEL: Final = "memloop-tiny"
_CLIENTS: Final = 4
_CHATS: Final = 12
"""For each engine, in each of three phases: both engines, one of them dead, both again."""
_PHASE_S: Final = 300.0
_METRICS: Final = """
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:7809/metrics", timeout=10).read().decode())
"""


def test_the_profile_cpu_passes_the_smoke_test(cpu_stack: ComposeStack) -> None:
    done = smoke(cpu_stack)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [model["id"] for model in ask(cpu_stack, "GET", "/v1/models")["data"]] == [MODEL]


def test_a_chat_answers_from_what_an_earlier_one_told(cpu_stack: ComposeStack) -> None:
    told = chat(cpu_stack, "The locker code of Marta is 482.", user="remembers")
    _until(lambda: _status(cpu_stack, told["memory"]["write_event_id"]) == "completed")
    answer = chat(cpu_stack, "What is the locker code of Marta?", user="remembers")
    assert "482" in answer["choices"][0]["message"]["content"]


def test_an_engine_killed_under_load_costs_no_chat_after_retries(cpu_stack: ComposeStack) -> None:
    killed, _ = cpu_stack.containers("inference-cpu")
    with _chatting(cpu_stack) as chatters:
        before = _until_served(cpu_stack, engines=2)
        docker("kill", "--signal", "KILL", killed)
        alone = _until_served(cpu_stack, engines=1)
        docker("start", killed)
        cpu_stack.wait_healthy()
        after = _until_served(cpu_stack, engines=2)
    answered, retried = sum(one.answered for one in chatters), sum(one.retried for one in chatters)
    print(f"{answered} chats answered, {retried} tries repeated; requests {before}, then {alone}, then {after}")
    assert [failure for one in chatters for failure in one.failed] == []
    assert len([count for count in alone.values() if count >= _CHATS]) == 1


def _status(stack: ComposeStack, event_id: str) -> str:
    return str(ask(stack, "GET", f"/v1/memory/events/{event_id}")["status"])


@contextlib.contextmanager
def _chatting(stack: ComposeStack) -> Generator[Sequence[Chatter]]:
    """The clients at work, each in a thread; they end with what they are at."""
    stop = threading.Event()
    chatters = [Chatter(stack, MODEL) for _ in range(_CLIENTS)]
    threads = [threading.Thread(target=one.run, args=(stop,), daemon=True) for one in chatters]
    for thread in threads:
        thread.start()
    try:
        yield chatters
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _until_served(stack: ComposeStack, *, engines: int) -> Mapping[str, float]:
    """Requests by engine from now on, once so many engines have served their chats."""
    before, since = _requests(stack), dict[str, float]()

    def served() -> bool:
        since.update({name: count - before.get(name, 0) for name, count in _requests(stack).items()})
        return len([count for count in since.values() if count >= _CHATS]) >= engines

    _until(served)
    return since


def _requests(stack: ComposeStack) -> Mapping[str, float]:
    said = docker("exec", stack.container("gateway"), "python", "-c", _METRICS)
    return counted(said, "upstream_replica_requests_total", upstream=f"{MODEL}/0")


def _until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PHASE_S
    while not reached():
        assert time.monotonic() < deadline, f"not within {_PHASE_S:.0f} s"
        time.sleep(0.1)
