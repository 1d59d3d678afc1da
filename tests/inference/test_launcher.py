"""The launcher as a process, with a fake engine's script in the place of the engine's Python."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, cast

import pytest

from tests.fakes import engine_process
from tests.fakes.processes import clean_environment, is_running, pids_in, wait_for
from tests.fakes.redis_server import free_port
from tests.inference.conftest import write_checkpoint


class Launcher:
    """A running ``inference.main``."""

    def __init__(self, checkpoint: Path, behaviour: str, **settings: str) -> None:
        self.port, self.engine_port = free_port(), free_port()
        self.pids_file = checkpoint.parent / "pids"
        environment = clean_environment(
            FAKE_ENGINE=behaviour,
            FAKE_ENGINE_PIDS=str(self.pids_file),
            MEMLOOP_MODEL=str(checkpoint),
            MEMLOOP_PROFILE="tiny",
            MEMLOOP_ENGINE="vllm-cpu",
            MEMLOOP_PORT=str(self.port),
            MEMLOOP_ENGINE_PORT=str(self.engine_port),
            MEMLOOP_SERVE_PYTHON=engine_process.__file__,
            MEMLOOP_SERVE_STOP_TIMEOUT_S="1",
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "inference.main"],
            env=environment | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except OSError:
            return 0, ""

    def json(self, path: str) -> dict[str, object]:
        return cast(dict[str, object], json.loads(self.get(path)[1]))

    def wait_until(self, path: str, status: int) -> None:
        wait_for(lambda: self.get(path)[0] == status or self.process.poll() is not None, f"{status} of {path}")
        assert self.process.poll() is None, self.process.communicate()

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err

    def orphans(self) -> list[int]:
        return [pid for pid in pids_in(self.pids_file) if is_running(pid)]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        for pid in self.orphans() if self.pids_file.is_file() else ():
            os.kill(pid, signal.SIGKILL)


class Start(Protocol):
    """Starts a launcher that the test's end closes."""

    def __call__(self, behaviour: str = "ready", **settings: str) -> Launcher: ...


@pytest.fixture
def start(checkpoint: Path) -> Iterator[Start]:
    started: list[Launcher] = []

    def start_one(behaviour: str = "ready", **settings: str) -> Launcher:
        started.append(Launcher(checkpoint, behaviour, **settings))
        return started[-1]

    yield start_one
    for launcher in started:
        launcher.close()


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """One for all tests that only look."""
    launcher = Launcher(write_checkpoint(tmp_path_factory.mktemp("served") / "my-model"), "ready")
    launcher.wait_until("/readyz", 200)
    yield launcher
    launcher.close()


@pytest.fixture
def ready(start: Start) -> Launcher:
    launcher = start()
    launcher.wait_until("/readyz", 200)
    return launcher


def test_a_ready_launcher_tells_model_profile_and_tokenizer(serving: Launcher) -> None:
    model = serving.json("/v1/model")
    assert model["id"] == "my-model"
    assert model["engine_url"] == f"http://127.0.0.1:{serving.engine_port}/v1"
    assert model["max_model_len"] == 4096
    assert str(serving.json("/v1/profile")["ref"]).startswith("tiny@1:")
    assert serving.get("/v1/tokenizer") == (200, '{"version": "1.0"}')


def test_readiness_comes_only_after_one_generation_of_each_shape(ready: Launcher) -> None:
    ready.process.terminate()
    _, out, _ = ready.ended()
    messages = [json.loads(line)["message"] for line in out.splitlines()]
    chats = [message for message in messages if message.startswith("chat [")]
    assert len(chats) == 6
    assert sum('"tools"' in chat for chat in chats) == 1
    assert messages.index(chats[-1]) < next(n for n, message in enumerate(messages) if message.startswith("ready:"))


def test_the_engines_gauges_appear_under_one_name(serving: Launcher) -> None:
    wait_for(lambda: "inference_engine_requests_running 3.0" in serving.get("/metrics")[1], "the gauges")
    exposition = serving.get("/metrics")[1]
    assert "inference_engine_requests_waiting 1.0" in exposition
    assert "inference_engine_up 1.0" in exposition
    assert 'inference_warmup_seconds{shape="memory"}' in exposition


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_launcher_engine_and_worker(ready: Launcher, number: signal.Signals) -> None:
    ready.process.send_signal(number)
    assert ready.ended()[0] == 0
    assert ready.orphans() == []


def test_a_killed_launcher_leaves_no_orphan(ready: Launcher) -> None:
    ready.process.kill()
    wait_for(lambda: not ready.orphans(), "the engine's end")


def test_an_engine_that_is_deaf_to_sigterm_is_killed(start: Start) -> None:
    launcher = start("stubborn")
    launcher.wait_until("/readyz", 200)
    launcher.process.terminate()
    assert launcher.ended()[0] == 0
    assert launcher.orphans() == []


def test_when_the_engine_dies_at_the_start_its_last_words_are_told(start: Start) -> None:
    code, _, err = start("dies").ended()
    assert code == 1
    assert "the engine died with status 3; its last words:" in err
    assert "ValueError: no room for the KV cache" in err


def test_when_the_engine_is_killed_in_service_the_launcher_ends_too(ready: Launcher) -> None:
    os.kill(pids_in(ready.pids_file)[0], signal.SIGKILL)
    code, _, err = ready.ended()
    assert code == 1
    assert "the engine died with status 137" in err
    assert ready.orphans() == []


def test_an_engine_that_never_answers_is_given_up_at_the_deadline(start: Start) -> None:
    launcher = start("hangs", MEMLOOP_SERVE_START_TIMEOUT_S="1.5")
    launcher.wait_until("/livez", 200)
    assert "the engine is starting" in launcher.get("/readyz")[1]
    code, _, err = launcher.ended()
    assert code == 1
    assert "the engine was not ready within 1.5 s: the engine cannot be reached" in err
    assert "still compiling" in err
    assert launcher.orphans() == []


def test_an_engine_that_serves_another_model_is_not_ready(start: Start) -> None:
    code, _, err = start("other-model", MEMLOOP_SERVE_START_TIMEOUT_S="1.5").ended()
    assert code == 1
    assert "it serves ['another'], not my-model" in err


def test_an_engine_with_a_key_is_warmed_up_with_it(start: Start) -> None:
    start("ready", MEMLOOP_ENGINE_API_KEY="secret").wait_until("/readyz", 200)


def test_a_taken_port_is_refused_before_anything_starts(start: Start, serving: Launcher) -> None:
    code, _, err = start("ready", MEMLOOP_ENGINE_PORT=str(serving.engine_port)).ended()
    assert code == 2
    assert f"port {serving.engine_port} is taken" in err


def test_refused_settings_give_one_line_and_status_2(start: Start) -> None:
    code, _, err = start("ready", MEMLOOP_SERVE_MAX_MODEL_LEN="100", MEMLOOP_SERVE_TYPO="1").ended()
    assert code == 2
    assert err == "the launcher refuses to start: unknown settings: MEMLOOP_SERVE_TYPO\n"


def test_an_unknown_route_has_openais_error_shape(serving: Launcher) -> None:
    status, body = serving.get("/v1/nothing")
    assert status == 404
    assert json.loads(body)["error"]["type"] == "not_found_error"
