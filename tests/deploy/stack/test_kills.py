"""Each container is killed while clients write and a document is read; no acknowledged write is lost or doubled.

The clients do what ours do on a failure: they send the same request, under the same ``Idempotency-Key``, again.
"""

import contextlib
import os
import signal
import threading
import time
import urllib.error
import uuid
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

import pytest

from tests.deploy.stack.compose import ComposeStack
from tests.deploy.stack.writers import Writer, ask, stored

pytestmark = pytest.mark.containers

_FACT = "The vault code of Marta is 731."
_FILLER = "The whale swam on through the night. Nobody spoke. "
_LONG_TEXT = _FILLER * 250 + _FACT + " " + _FILLER * 250
_WRITES_BEFORE, _WRITES_AFTER = 8, 8
_DEAD_S = 2.0
_READ_S = 600.0
_SERVICES = ("redis", "qdrant", "memory-store", "gateway", "worker", "inference-cpu", "inference-reader")


@pytest.mark.parametrize("service", _SERVICES)
def test_a_killed_container_loses_and_doubles_no_acknowledged_write(stack: ComposeStack, service: str) -> None:
    run = uuid.uuid4().hex[:8]
    direct = Writer(stack, f"direct-{service}-{run}", infer=False, pause_s=0.1)
    queued = Writer(stack, f"queued-{service}-{run}", infer=True, pause_s=3.0)
    read = _start_read(stack)
    with _writing(direct, queued):
        _until(lambda: len(direct.acknowledged) >= _WRITES_BEFORE and len(queued.acknowledged) >= 2, direct, queued)
        stack.kill(service)
        assert stack.state(service) == "exited"
        time.sleep(_DEAD_S)
        stack.up()
        known, known_queued = len(direct.acknowledged), len(queued.acknowledged)
        _until(lambda: len(direct.acknowledged) >= known + _WRITES_AFTER, direct, queued)
        _until(lambda: len(queued.acknowledged) >= known_queued + 2, direct, queued)
    print(f"{service}: {_report(direct)}; {_report(queued)}")
    assert (direct.fault, queued.fault) == (None, None)
    _assert_kept_once(direct)
    _assert_written(queued)
    _assert_kept_once(queued)
    assert _answer_of(stack, read) == "731"


def test_a_process_that_dies_is_started_again_by_the_restart_policy(stack: ComposeStack) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may kill a container's process from outside")
    before = stack.inspect("worker")
    os.kill(before["State"]["Pid"], signal.SIGKILL)
    _until(lambda: stack.inspect("worker")["RestartCount"] > before["RestartCount"])
    stack.wait_healthy()
    assert stack.inspect("worker")["State"]["Pid"] != before["State"]["Pid"]


@contextlib.contextmanager
def _writing(*writers: Writer) -> Generator[None]:
    """The writers at work, each in a thread; they end with what they are at."""
    stop = threading.Event()
    threads = [threading.Thread(target=writer.run, args=(stop,), daemon=True) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _until(reached: Callable[[], bool], *writers: Writer, timeout_s: float = 300.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not reached():
        assert [writer.fault for writer in writers if writer.fault] == []
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s; {[_report(writer) for writer in writers]}"
        time.sleep(0.1)


def _report(writer: Writer) -> str:
    return f"{writer.user}: {len(writer.acknowledged)} acknowledged, {writer.failures} tries failed"


def _assert_kept_once(writer: Writer) -> None:
    """Of a queued text its raw turn is counted: the memory writer may have put what it says into other words."""
    items = stored(writer.stack, writer.user)
    texts = [item["memory"] for item in items if not writer.infer or item["memory_type"] == "RawTurn"]
    counts = Counter({text: sum(text in found for found in texts) for text in writer.acknowledged})
    assert {text: count for text, count in counts.items() if count != 1} == {}
    assert len(texts) == len(writer.acknowledged)


def _assert_written(writer: Writer) -> None:
    """Every event ended. The tiny model may not have known what to do with a text: its turn is kept all the same."""
    for event_id in writer.events:
        event = _ended(writer.stack, f"/v1/memory/events/{event_id}")
        assert event["status"] in {"completed", "kept_verbatim"}, event


def _start_read(stack: ComposeStack) -> str:
    body = {"question": "What is the vault code of Marta?", "document": {"text": _LONG_TEXT}, "background": True}
    return str(ask(stack, "POST", "/v1/long-read", body)["id"])


def _answer_of(stack: ComposeStack, read: str) -> str:
    found = _ended(stack, f"/v1/long-read/{read}")
    assert found["status"] == "completed", found
    print(f"read {read}: {found['progress']}")
    return "731" if "731" in found["output_text"] else str(found["output_text"])


def _ended(stack: ComposeStack, path: str) -> dict[str, Any]:
    deadline = time.monotonic() + _READ_S
    while True:
        with contextlib.suppress(urllib.error.HTTPError, OSError):
            found = ask(stack, "GET", path)
            if found["status"] in {"completed", "kept_verbatim", "failed", "incomplete", "cancelled"}:
                return found
        assert time.monotonic() < deadline, f"{path} did not end within {_READ_S:.0f} s"
        time.sleep(0.5)
