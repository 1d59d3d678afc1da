"""What people expect of a command line: status, logs, completion, colours, a memory's whole life."""

import re
import sys
from pathlib import Path

import pytest

from tests.fakes.gateway_server import FakeGateway
from tests.fakes.processes import clean_environment, printed_by
from tests.memloop_cli.conftest import Memloop, lines


def test_status_shows_gateway_and_models(memloop: Memloop, gateway: FakeGateway) -> None:
    result = memloop("status")
    assert (result.exit_code, lines(result)) == (0, [f"gateway  {gateway.url}", "models   tiny"])


def test_status_without_a_stack_fails(memloop: Memloop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLOOP_URL", "http://127.0.0.1:9")
    assert memloop("status").exit_code == 1


def test_logs_print_the_last_lines_of_each_component(memloop: Memloop, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "gateway.log").write_text("one\ntwo\nthree\n")
    (tmp_path / "logs" / "worker.log").write_text("ready\n")
    all_of_them = memloop("logs", "--home", str(tmp_path), "-n", "2")
    assert lines(all_of_them) == ["gateway      two", "gateway      three", "worker       ready"]
    assert lines(memloop("logs", "worker", "--home", str(tmp_path))) == ["ready"]
    assert lines(memloop("logs", "moon", "--home", str(tmp_path))) == [
        "memloop: there is no log of moon; there are gateway, worker"
    ]


def test_logs_without_a_stack_say_where_they_would_come_from(memloop: Memloop, tmp_path: Path) -> None:
    result = memloop("logs", "--home", str(tmp_path))
    assert (result.exit_code, "`memloop up` writes them" in result.output) == (1, True)


async def test_a_completion_script_of_the_shell_is_printed(tmp_path: Path) -> None:
    """The program looks for a shell among the processes above it: bash must stay there, not become the program."""
    asked = f"{Path(sys.executable).with_name('memloop')} --show-completion; true"
    assert "_MEMLOOP_COMPLETE" in await printed_by("bash", "-c", asked, cwd=tmp_path, env=clean_environment())


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1", "FORCE_COLOR": ""}], ids=["piped", "NO_COLOR"])
def test_no_colours_without_a_terminal_or_with_no_color(
    memloop: Memloop, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert not re.search(r"\x1b\[", memloop("memory", "list").output)


def test_a_memory_is_deleted_by_id(memloop: Memloop, gateway: FakeGateway) -> None:
    assert lines(memloop("memory", "delete", "m1")) == ["deleted  m1"]
    assert [path for path, _ in gateway.asked] == ["/v1/memory/m1"]


def test_the_history_of_a_memory_lists_its_versions(memloop: Memloop) -> None:
    (line,) = lines(memloop("memory", "history", "m1"))
    assert line == "2026-03-14  The locker code of the user is 482.  [m1, version 1]  activated"


@pytest.mark.parametrize(
    "command",
    [("delete", "m1", "m9", "m1"), ("history", "m9"), ("feedback", "m9", "wrong")],
    ids=lambda words: words[0],
)
def test_a_memory_that_is_not_found_is_named(memloop: Memloop, command: tuple[str, ...]) -> None:
    result = memloop("memory", *command)
    assert lines(result)[-1] == "memloop: there is no such memory: m9"
    assert result.exit_code == 2


def test_an_export_goes_to_a_file(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    assert memloop("memory", "export", "--user", "u1", "-o", str(file)).exit_code == 0
    assert file.read_text().splitlines()[-1] == '{"exported":1}'
    assert gateway.bodies("/v1/memory/export") == [{"user_id": "u1", "include_raw": False}]


def test_an_export_that_ends_early_fails(memloop: Memloop, gateway: FakeGateway) -> None:
    gateway.whole = False
    result = memloop("memory", "export")
    assert (result.exit_code, "the export is not whole" in result.output) == (1, True)


def test_an_erasure_asks_first(memloop: Memloop, gateway: FakeGateway) -> None:
    assert memloop("memory", "erase", "--user", "u1", typed="n\n").exit_code == 1
    assert gateway.asked == []
    result = memloop("memory", "erase", "--user", "u1", "--agent", "a", "--yes")
    told = "3 memories and turns, 1 buffers, 0 waiting writes, 2 events, 0 derived records of user u1, agent a"
    assert lines(result) == [f"erased  {told}"]
    assert gateway.asked == [("/v1/memory", {"user_id": "u1", "agent_id": "a"})]


def test_an_erasure_names_its_user(memloop: Memloop) -> None:
    assert memloop("memory", "erase", "--yes").exit_code == 2
