"""``memloop read``."""

from pathlib import Path

import pytest

from memloop.wire.errors import ErrorBody
from memloop.wire.long_read import IncompleteDetails
from tests.fakes.gateway_server import FakeGateway, ended
from tests.memloop_cli.conftest import Memloop, lines


@pytest.fixture
def book(tmp_path: Path) -> Path:
    file = tmp_path / "book.txt"
    file.write_text("Call me Ishmael.\n")
    return file


def test_a_read_shows_progress_memory_rereads_answer_and_cost(memloop: Memloop, book: Path) -> None:
    result = memloop("read", str(book), "What is the code?", "--strategy", "memreread")
    assert result.exit_code == 0
    shown = " ".join(lines(result))
    assert "reading" in shown
    assert "2/2" in shown
    assert "reread 1: Who?" in shown
    assert "Second." in shown
    assert "reread  Who? → Marta" in shown
    assert "answer  482" in shown
    assert "1,234 tokens (1,200 in, 34 out) in 7 calls" in shown


def test_a_read_sends_the_document_and_the_strategy(memloop: Memloop, gateway: FakeGateway, book: Path) -> None:
    memloop("read", str(book), "What is the code?", "--strategy", "memreread", "--max-rereads", "1")
    (body,) = gateway.bodies("/v1/long-read")
    assert body["document"] == {"text": "Call me Ishmael.\n"}
    assert (body.get("model"), body["question"], body["stream"]) == (None, "What is the code?", True)
    assert (body["strategy"], body["max_rereads"]) == ("memreread", 1)


def test_a_document_comes_from_standard_input(memloop: Memloop, gateway: FakeGateway) -> None:
    assert memloop("read", "-", "What?", typed="Piped text.").exit_code == 0
    assert gateway.bodies("/v1/long-read")[0]["document"] == {"text": "Piped text."}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no file"),
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"text\0text", "is binary: it contains NUL"),
    ],
    ids=["missing", "empty", "blank", "NUL"],
)
def test_what_is_no_text_is_refused_in_one_line(
    memloop: Memloop, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "document"
    if content is not None:
        file.write_bytes(content)
    result = memloop("read", str(file), "What?")
    assert result.exit_code == 2
    (line,) = lines(result)
    assert line.startswith("memloop: ")
    assert reason in line


def test_an_empty_question_is_refused(memloop: Memloop, book: Path) -> None:
    result = memloop("read", str(book), "  ")
    assert (result.exit_code, lines(result)) == (2, ["memloop: the question is empty"])


def test_a_refusal_of_the_gateway_is_printed_with_its_field(memloop: Memloop, gateway: FakeGateway, book: Path) -> None:
    gateway.refusal = (422, "The document is too strange.")
    result = memloop("read", str(book), "What?", "--model", "m")
    assert (result.exit_code, lines(result)[-1]) == (2, "memloop: The document is too strange. (document.text)")


def test_a_failed_read_prints_its_reason(memloop: Memloop, gateway: FakeGateway, book: Path) -> None:
    body = ErrorBody(message="the engine cannot be reached", type="upstream_error")
    gateway.read = ended("failed", error=body)
    result = memloop("read", str(book), "What?")
    assert result.exit_code == 1
    assert lines(result)[-1] == "memloop: the read failed: the engine cannot be reached"


def test_an_incomplete_read_shows_its_answer_and_fails(memloop: Memloop, gateway: FakeGateway, book: Path) -> None:
    gateway.read = ended("incomplete", incomplete_details=IncompleteDetails(reason="deadline"))
    result = memloop("read", str(book), "What?")
    assert result.exit_code == 1
    assert "answer  482" in result.output
    assert "deadline was reached" in result.output


def test_a_stream_that_breaks_off_is_no_answer(memloop: Memloop, gateway: FakeGateway, book: Path) -> None:
    gateway.read = None
    result = memloop("read", str(book), "What?")
    assert result.exit_code == 1
    assert lines(result)[-1] == "memloop: the read failed: its stream ended too early"


def test_without_a_stack_the_start_command_is_shown(
    memloop: Memloop, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMLOOP_URL", "http://127.0.0.1:9")
    result = memloop("read", str(book), "What?")
    assert result.exit_code == 1
    (line,) = lines(result)
    assert line == "memloop: no gateway answers at http://127.0.0.1:9: start one with `memloop up`, or set MEMLOOP_URL"


def test_a_url_that_is_none_is_refused(memloop: Memloop, book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLOOP_URL", "localhost:7800")
    result = memloop("read", str(book), "What?")
    assert (result.exit_code, lines(result)) == (2, ["memloop: 'localhost:7800' is not an http URL (MEMLOOP_URL)"])
