"""Which processes the local stack has, on which ports, and what they are told."""

import os
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.engine.models_file import read_models
from gateway.settings import GatewaySettings
from memloop_cli.errors import CliError
from memloop_cli.home import Home, StackNote, gateway_url
from memloop_cli.main import app
from memloop_cli.stack.component import Component
from memloop_cli.stack.local import NO_BYTECODE, Ports, check_ports, free_ports, local_stages, ports_from
from memloop_cli.stack.redis import find_redis, redis_command
from tests.fakes.ports import free_port

NOTE = StackNote(pid=os.getpid(), status="ready", url="http://127.0.0.1:7900", ports={})


def components(home: Path, **environment: str) -> dict[str, Component]:
    stages = local_stages(home, Ports(7800), {"PATH": os.environ["PATH"], **environment})
    return {component.name: component for stage in stages for component in stage}


def test_all_but_redis_start_at_once(tmp_path: Path) -> None:
    stages = local_stages(tmp_path, Ports(7800), {"PATH": os.environ["PATH"]})
    assert [[part.name for part in stage] for stage in stages] == [
        ["redis"],
        ["inference", "store", "gateway", "worker"],
    ]


def test_what_waits_for_the_engine_has_as_long_as_the_engine(tmp_path: Path) -> None:
    parts = components(tmp_path)
    assert {parts[name].timeout_s for name in ("inference", "gateway", "worker")} == {900.0}


def test_each_component_gets_the_addresses_of_the_others(tmp_path: Path) -> None:
    parts = components(tmp_path)
    assert parts["store"].environment["MEMLOOP_PORT"] == "7801"
    assert parts["store"].environment["MEMLOOP_REDIS_URL"] == "redis://127.0.0.1:7805/0"
    assert parts["inference"].environment["MEMLOOP_ENGINE_PORT"] == "7803"
    for name in ("gateway", "worker"):
        told = parts[name].environment
        assert told["MEMLOOP_STORE_URL"] == "http://127.0.0.1:7801"
        assert told["MEMLOOP_ENGINE_URL"] == "http://127.0.0.1:7803/v1"
        assert told["MEMLOOP_INFERENCE_URL"] == "http://127.0.0.1:7802"


def test_a_start_writes_the_bytecode_that_the_next_one_needs(tmp_path: Path) -> None:
    parts = components(tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert [name for name, part in parts.items() if name != "redis" and NO_BYTECODE in part.environment] == []


def test_all_data_is_in_the_stacks_folder(tmp_path: Path) -> None:
    parts = components(tmp_path)
    assert parts["store"].environment["MEMLOOP_DATA_DIR"] == str(tmp_path / "edge")
    assert str(tmp_path / "redis") in parts["redis"].command


def test_everything_listens_on_the_loopback_only(tmp_path: Path) -> None:
    parts = components(tmp_path, MEMLOOP_HOST="0.0.0.0")
    assert {part.environment["MEMLOOP_HOST"] for name, part in parts.items() if name != "redis"} == {"127.0.0.1"}
    assert "127.0.0.1" in parts["redis"].command


def test_with_an_engine_url_no_engine_is_started(tmp_path: Path) -> None:
    parts = components(
        tmp_path, MEMLOOP_ENGINE_URL="https://e.example/v1", MEMLOOP_ENGINE_API_KEY="k", MEMLOOP_MODEL="gpt"
    )
    assert "inference" not in parts
    told = parts["worker"].environment
    assert told["MEMLOOP_ENGINE_URL"] == "https://e.example/v1"
    assert (told["MEMLOOP_ENGINE_API_KEY"], told["MEMLOOP_MODEL"]) == ("k", "gpt")
    assert "MEMLOOP_INFERENCE_URL" not in told


def test_a_model_for_the_launcher_is_not_taken_for_a_served_id(tmp_path: Path) -> None:
    parts = components(tmp_path, MEMLOOP_MODEL="/models/mine")
    assert parts["inference"].environment["MEMLOOP_MODEL"] == "/models/mine"
    assert "MEMLOOP_MODEL" not in parts["gateway"].environment


def test_a_models_file_replaces_every_engine_of_the_stack(tmp_path: Path) -> None:
    parts = components(tmp_path, MEMLOOP_MODELS="/etc/models.toml", MEMLOOP_MODEL="m")
    assert set(parts) == {"redis", "store", "gateway", "worker"}
    told = parts["worker"].environment
    assert (told["MEMLOOP_MODELS"], "MEMLOOP_ENGINE_URL" in told) == ("/etc/models.toml", False)


def test_a_model_for_long_reads_has_an_engine_of_its_own(tmp_path: Path) -> None:
    given = {"MEMLOOP_READER_MODEL": "other", "MEMLOOP_READER_PROFILE": "section-first", "MEMLOOP_MODEL_PATH": "/mine"}
    ports = ports_from(7800, given)
    stages = local_stages(tmp_path, ports, {"PATH": os.environ["PATH"], **given})
    parts = {component.name: component for stage in stages for component in stage}
    writer, reader = parts["inference"].environment, parts["reader"].environment
    assert (writer["MEMLOOP_SERVE_NAME"], writer["MEMLOOP_ENGINE_PORT"]) == ("writer", "7803")
    assert (reader["MEMLOOP_SERVE_NAME"], reader["MEMLOOP_PORT"], reader["MEMLOOP_ENGINE_PORT"]) == (
        "reader",
        "7806",
        "7807",
    )
    assert (reader["MEMLOOP_MODEL"], reader["MEMLOOP_PROFILE"]) == ("other", "section-first")
    assert "MEMLOOP_MODEL" not in writer
    assert (writer["MEMLOOP_MODEL_PATH"], reader["MEMLOOP_MODEL_PATH"]) == ("/mine", "")
    (file,) = {Path(parts[name].environment["MEMLOOP_MODELS"]) for name in ("gateway", "worker")}
    config = read_models(GatewaySettings.model_validate({"models": file}))
    assert [(spec.id, spec.engine_urls, spec.inference_url) for spec in config.specs] == [
        ("writer", ("http://127.0.0.1:7803/v1",), "http://127.0.0.1:7802"),
        ("reader", ("http://127.0.0.1:7807/v1",), "http://127.0.0.1:7806"),
    ]
    assert config.roles == {"writer": "writer", "reader": "reader", "chat": "writer"}


@pytest.mark.parametrize("name", ["MEMLOOP_ENGINE_URL", "MEMLOOP_MODELS"])
def test_a_second_engine_is_not_started_beside_given_ones(tmp_path: Path, name: str) -> None:
    given = {"MEMLOOP_READER_MODEL": "other", name: "http://e.example/v1"}
    with pytest.raises(CliError, match=f"with {name}, name it in a models file"):
        local_stages(tmp_path, ports_from(7800, given), {"PATH": os.environ["PATH"], **given})


def test_redis_keeps_every_write_and_evicts_nothing(tmp_path: Path) -> None:
    command = " ".join(redis_command(find_redis(), port=7805, folder=tmp_path))
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_a_taken_port_is_named_with_its_component() -> None:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen()
        port = somebody.getsockname()[1]
        with pytest.raises(CliError, match=f"store {port}"):
            check_ports(Ports(port - 1))


def test_six_free_neighbours_are_found_beyond_a_taken_port() -> None:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen()
        port = somebody.getsockname()[1]
        assert free_ports(port - 2, step=7).gateway > port


def test_a_home_without_a_running_stack_is_an_error(tmp_path: Path) -> None:
    home = Home(tmp_path / "new")
    assert home.running() is None
    assert gateway_url(home, None) == "http://127.0.0.1:7800"


def test_a_running_stack_shows_its_address(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.held(NOTE):
        assert home.running() == NOTE
        assert gateway_url(home, None) == "http://127.0.0.1:7900"
        assert gateway_url(home, "http://other") == "http://other"
    assert home.running() is None


def test_a_note_that_a_killed_stack_left_behind_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text(NOTE.model_dump_json())
    assert Home(tmp_path).running() is None


def test_two_stacks_do_not_share_a_home(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.held(NOTE), pytest.raises(CliError, match="a stack runs here already"), home.held(NOTE):
        pytest.fail("held twice")


def test_down_without_a_stack_is_one_clear_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["down", "--home", str(tmp_path)])
    assert (result.exit_code, result.output) == (1, f"memloop: no stack runs in {tmp_path}\n")


def test_up_on_taken_ports_is_one_clear_line(tmp_path: Path) -> None:
    port = free_port()
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", port))
        somebody.listen()
        result = CliRunner().invoke(app, ["up", "--home", str(tmp_path), "--port", str(port)])
    assert result.exit_code == 1
    assert result.output.startswith(f"memloop: these ports are in use: gateway {port}")
