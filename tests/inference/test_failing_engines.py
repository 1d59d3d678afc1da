"""An engine that dies, hangs, has no memory or gets stuck: the launcher's status and last words; and how it drains."""

import json
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from inference.metrics import EngineLoad
from inference.stuck import EngineStuck, StuckWatch
from memloop.ports import Completion, Prompt
from memloop.wire.errors import EngineError
from tests.fakes.processes import PATIENCE_S, kill_pid, pids_in, wait_for
from tests.inference.launcher_process import Launcher, Start

BUSY = EngineLoad(running=2, waiting=1, generated=100)


def test_when_the_engine_dies_at_the_start_its_last_output_is_shown(start: Start) -> None:
    code, _, err = start("dies").ended()
    assert code == 1
    assert "the engine died with status 3; its last lines:" in err
    assert "ValueError: no room for the KV cache" in err


def test_when_the_engine_is_killed_in_service_the_launcher_ends_too(ready: Launcher) -> None:
    kill_pid(pids_in(ready.pids_file)[0])
    code, _, err = ready.ended()
    assert code == 1
    assert "the engine died with status 137" in err
    assert ready.orphans() == []


def test_a_launcher_is_alive_and_not_ready_while_its_engine_starts(start: Start) -> None:
    launcher = start("hangs")
    launcher.wait_until("/livez", 200)
    assert "the engine is starting" in launcher.get("/readyz")[1]


def test_an_engine_that_never_answers_is_given_up_at_the_deadline(start: Start) -> None:
    launcher = start("hangs", MEMLOOP_SERVE_START_TIMEOUT_S="5")
    code, _, err = launcher.ended()
    assert code == 1
    assert "the engine was not ready within 5 s: the engine cannot be reached" in err
    assert "still compiling" in err
    assert launcher.orphans() == []


def test_an_engine_that_serves_another_model_is_not_ready(start: Start) -> None:
    code, _, err = start("other-model", MEMLOOP_SERVE_START_TIMEOUT_S="5").ended()
    assert code == 1
    assert "it serves ['another'], not my-model" in err


def test_an_engine_without_memory_is_explained_though_its_traceback_is_long(start: Start) -> None:
    code, _, err = start("no-memory").ended()
    assert code == 1
    assert err.startswith("the engine died with status 1; about memory: ValueError: To serve at least one request")
    assert "larger than the available KV cache memory (0.5 GiB)" in err.splitlines()[0]
    assert "see above" in err.splitlines()[-1]


class Asking(threading.Thread):
    """A client of the engine itself, whose reply may be long in coming; None when the connection was lost."""

    def __init__(self, launcher: Launcher) -> None:
        super().__init__(daemon=True)
        self.reply: object = None
        self._url = f"{launcher.engine_url}/chat/completions"
        self.start()

    def wait_until_running(self) -> None:
        wait_for(lambda: b'num_requests_running{engine="0",model_name="m"} 1' in self._metrics(), "a running request")

    def run(self) -> None:
        try:
            with urllib.request.urlopen(self._url, data=b"{}", timeout=PATIENCE_S) as answer:
                self.reply = json.load(answer)["choices"][0]["message"]["content"]
        except OSError:
            self.reply = None

    def _metrics(self) -> bytes:
        with urllib.request.urlopen(
            self._url.replace("/v1/chat/completions", "/metrics"), timeout=PATIENCE_S
        ) as answer:
            return answer.read()


def running(launcher: Launcher) -> Asking:
    """A client whose request the engine holds by now."""
    asking = Asking(launcher)
    asking.wait_until_running()
    return asking


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The file that lets a held chat go on."""
    return tmp_path / "release"


@pytest.fixture
def held(start: Start, release: Path) -> Callable[..., Launcher]:
    """Starts a ready launcher whose engine holds every chat until ``release`` is there."""

    def start_held(**settings: str) -> Launcher:
        launcher = start("holds", ports=None, FAKE_ENGINE_RELEASE=str(release), **settings)
        launcher.wait_until("/readyz", 200)
        return launcher

    return start_held


def test_a_stuck_engine_ends_the_launcher(held: Callable[..., Launcher]) -> None:
    launcher = held(MEMLOOP_SERVE_STUCK_AFTER_S="0.4")
    asking = Asking(launcher)
    code, _, err = launcher.ended()
    asking.join()
    assert (code, asking.reply) == (1, None)
    assert err.startswith("the engine is stuck: no token for ")
    assert "and one token asked for did not come within 0.4 s; its last lines:" in err
    assert launcher.orphans() == []


def test_a_stopping_launcher_is_not_ready_and_lets_running_requests_end(
    held: Callable[..., Launcher], release: Path
) -> None:
    launcher = held(MEMLOOP_SERVE_STOP_TIMEOUT_S="60")
    asking = running(launcher)
    launcher.process.terminate()
    launcher.wait_until("/readyz", 503)
    assert "the engine is stopping" in launcher.get("/readyz")[1]
    assert asking.is_alive()
    release.touch()
    code, _, _ = launcher.ended()
    asking.join()
    assert (code, asking.reply) == (0, "Fake.")


def test_an_idle_launcher_serves_while_it_drains(start: Start) -> None:
    launcher = start(MEMLOOP_DRAIN_S="600")
    launcher.wait_until("/readyz", 200)
    launcher.process.terminate()
    launcher.wait_until("/readyz", 503)
    late = Asking(launcher)
    late.join()
    assert late.reply == "Fake."
    launcher.process.terminate()
    assert launcher.ended()[0] == 0


def test_requests_that_do_not_end_in_time_are_cut(held: Callable[..., Launcher]) -> None:
    launcher = held(MEMLOOP_SERVE_STOP_TIMEOUT_S="0.5")
    asking = running(launcher)
    launcher.process.terminate()
    assert launcher.ended()[0] == 0
    asking.join()
    assert asking.reply is None


def test_a_second_signal_does_not_wait_for_requests(held: Callable[..., Launcher]) -> None:
    launcher = held(MEMLOOP_SERVE_STOP_TIMEOUT_S="300")
    running(launcher)
    launcher.process.terminate()
    launcher.wait_until("/readyz", 503)
    launcher.process.terminate()
    assert launcher.ended()[0] == 0


@dataclass
class Probed:
    """A model that counts its calls; ``fails`` is raised."""

    fails: Exception | None = None
    prompts: list[Prompt] = field(default_factory=list[Prompt])

    async def complete(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        if self.fails is not None:
            raise self.fails
        return Completion("x")


async def looks(model: Probed, *loads: EngineLoad | None, after_s: float = 60) -> None:
    """A look every half minute."""
    now = 0.0
    watch = StuckWatch(model, after_s=after_s, clock=lambda: now)
    for load in loads:
        await watch.look(load)
        now += 30


@pytest.mark.parametrize(
    "loads",
    [
        [EngineLoad(running=0, waiting=0, generated=100)] * 9,
        [EngineLoad(running=2, waiting=1, generated=float(made)) for made in range(9)],
        [EngineLoad(running=2)] * 9,
        [BUSY, EngineLoad(running=0, waiting=0, generated=100)] * 4,
    ],
    ids=["idle", "generating", "tells no counter", "busy for a short time"],
)
async def test_an_engine_that_is_well_is_not_tried(loads: list[EngineLoad]) -> None:
    model = Probed()
    await looks(model, *loads)
    assert model.prompts == []


async def test_a_silence_that_one_token_breaks_is_no_fault() -> None:
    model = Probed()
    await looks(model, *[BUSY] * 6)
    assert [prompt.sampling.max_tokens for prompt in model.prompts] == [1, 1]


@pytest.mark.parametrize("load", [BUSY, None, EngineLoad(waiting=1, generated=0)], ids=["busy", "mute", "queue only"])
async def test_a_silent_engine_is_reported(load: EngineLoad | None) -> None:
    with pytest.raises(EngineStuck, match=r"no token for 60 s, .* within 60 s \(dead\)"):
        await looks(Probed(fails=EngineError("dead")), *[load] * 4)


async def test_a_watch_that_is_off_never_tries() -> None:
    model = Probed(fails=EngineError("dead"))
    await looks(model, *[BUSY] * 9, after_s=0)
    assert model.prompts == []
