"""The launcher in good days: what it tells, when it is ready, how it stops, what it refuses."""

import json
import signal
from collections.abc import Iterator

import pytest

from tests.fakes.processes import wait_for
from tests.fakes.word_tokenizer import word_tokenizer
from tests.inference.conftest import write_checkpoint
from tests.inference.launcher_process import Launcher, Start


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """One for all tests that only look."""
    launcher = Launcher(write_checkpoint(tmp_path_factory.mktemp("served") / "my-model"), "ready")
    launcher.wait_until("/readyz", 200)
    yield launcher
    launcher.close()


def test_a_ready_launcher_serves_model_profile_and_tokenizer(serving: Launcher) -> None:
    model = serving.json("/v1/model")
    assert model["id"] == "my-model"
    assert model["engine_url"] == f"http://127.0.0.1:{serving.engine_port}/v1"
    assert model["max_model_len"] == 4096
    assert str(serving.json("/v1/profile")["ref"]).startswith("tiny@1:")
    assert serving.get("/v1/tokenizer") == (200, word_tokenizer())


def test_readiness_comes_only_after_one_generation_of_each_shape(ready: Launcher) -> None:
    assert ready.generated() == 6
    ready.process.terminate()
    _, out, _ = ready.ended()
    chats = [line for line in out.splitlines() if json.loads(line)["message"].startswith("chat [")]
    assert len(chats) == 6
    assert sum('"tools"' in json.loads(chat)["message"] for chat in chats) == 1


def test_the_engines_gauges_appear_under_one_name(serving: Launcher) -> None:
    wait_for(lambda: "inference_engine_kv_cache_used_ratio 0.25" in serving.get("/metrics")[1], "the gauges")
    exposition = serving.get("/metrics")[1]
    assert "inference_engine_requests_running 0.0" in exposition
    assert "inference_engine_requests_waiting 0.0" in exposition
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


def test_without_a_parser_the_default_profile_starts_and_says_in_which_form_memories_are_written(start: Start) -> None:
    launcher = start("ready", MEMLOOP_PROFILE="default", MEMLOOP_SERVE_TOOL_CALL_PARSER="")
    launcher.wait_until("/readyz", 200)
    launcher.process.terminate()
    code, out, err = launcher.ended()
    assert code == 0
    assert "memories are written in the form json_schema" in out + err
    assert "MEMLOOP_SERVE_TOOL_CALL_PARSER (hermes for Qwen)" in out + err
    assert '"tools"' not in out + err  # vLLM would have refused such a warm-up


def test_a_profile_of_tools_alone_is_refused_without_a_parser_before_the_weights_are_loaded(start: Start) -> None:
    """vLLM would refuse the warm-up, minutes later."""
    launcher = start("ready", MEMLOOP_PROFILE="tiny", MEMLOOP_SERVE_TOOL_CALL_PARSER="")
    code, _, err = launcher.ended()
    assert code == 2
    assert "requires tool calls" in err
    assert "MEMLOOP_SERVE_TOOL_CALL_PARSER" in err
    assert not launcher.pids_file.exists()


def test_an_unknown_route_has_openais_error_shape(serving: Launcher) -> None:
    status, body = serving.get("/v1/nothing")
    assert status == 404
    assert json.loads(body)["error"]["type"] == "not_found_error"
