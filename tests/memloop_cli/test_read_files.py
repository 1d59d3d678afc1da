"""``memloop read`` for files, folders, patterns, URLs; queued reads, several questions, JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from memloop.wire.long_read import Evidence
from tests.fakes.gateway_server import FakeGateway, ended
from tests.memloop_cli.conftest import Memloop, lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    (folder / "old").mkdir(parents=True)
    (folder / "a.pdf").write_bytes(b"%PDF-1.7 a")
    (folder / "notes.md").write_text("New notes.")
    (folder / "old" / "notes.md").write_text("Old notes.")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.txt").write_text("Hidden.")
    return folder


def document(gateway: FakeGateway) -> Any:
    return gateway.bodies("/v1/long-read")[-1]["document"]


def test_a_folders_documents_are_uploaded_and_read_as_one(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    result = memloop("read", str(folder), "What is the code?", "--evidence")
    assert result.exit_code == 0, result.output
    names = sorted(name for name, _ in gateway.uploads.values())
    assert names[0] == "a.pdf"
    assert [name.rpartition("papers - ")[2] for name in names[1:]] == ["notes.md", "old - notes.md"]
    body = gateway.bodies("/v1/long-read")[-1]
    assert (body["background"], body["evidence"]) == (True, True)
    ids = document(gateway)["file_ids"]
    assert gateway.uploads[ids[0]][0] == "a.pdf"
    assert len(ids) == 3
    assert f"left out  {folder}/photo.png" in result.output
    assert "answer  482" in result.output


def test_the_estimate_comes_before_the_read(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    result = memloop("read", str(folder), "What?")
    assert "at most 3 calls, 2,000 tokens in, 300 out: 90 tokens in 2 chunks" in result.output
    assert [path for path, _ in gateway.asked if "long-read" in path][:2] == ["/v1/long-read/estimate", "/v1/long-read"]


def test_an_estimate_alone_reads_nothing(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    assert memloop("read", str(folder / "a.pdf"), "What?", "--estimate").exit_code == 0
    assert gateway.bodies("/v1/long-read") == []


def test_a_pattern_that_the_shell_left_alone_is_expanded(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    assert memloop("read", f"{folder}/**/*.md", "What?").exit_code == 0
    assert sorted(raw for _, raw in gateway.uploads.values()) == [b"New notes.", b"Old notes."]


def test_a_file_that_two_names_find_is_read_once(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    assert memloop("read", str(folder), f"{folder}/**/*.md", f"{folder}/old/../a.pdf", "What?").exit_code == 0
    assert len(document(gateway)["file_ids"]) == 3


def test_a_repeated_command_uploads_nothing_again(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    memloop("read", str(folder), "What?")
    first = document(gateway)
    memloop("read", str(folder), "And now?")
    assert (len(gateway.uploads), document(gateway)) == (3, first)


def test_an_upload_that_has_expired_is_made_again(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    memloop("read", str(folder / "a.pdf"), "What?")
    gateway.uploads = {"file-0": ("other", b"")}
    memloop("read", str(folder / "a.pdf"), "What?")
    assert document(gateway) == {"file_id": "file-2"}


def test_a_file_without_text_is_left_out_with_its_reason(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    gateway.unreadable = {"a.pdf"}
    result = memloop("read", str(folder), "What?")
    assert "left out  a.pdf: the file contains no text (a scan?)" in result.output
    assert result.exit_code == 0


def test_an_empty_file_of_a_folder_is_left_out_with_its_reason(
    memloop: Memloop, gateway: FakeGateway, folder: Path
) -> None:
    (folder / "empty.txt").touch()
    result = memloop("read", str(folder), "What?")
    assert (result.exit_code, len(gateway.uploads)) == (0, 3)
    assert f"left out  {folder}/empty.txt: it is empty" in result.output


def test_a_file_that_the_gateway_refuses_is_left_out_with_its_reason(
    memloop: Memloop, gateway: FakeGateway, folder: Path
) -> None:
    gateway.refused = {"a.pdf"}
    result = memloop("read", str(folder), "What?")
    assert (result.exit_code, len(gateway.uploads)) == (0, 2)
    assert "left out  a.pdf: The file is too large." in result.output


def test_a_text_that_is_not_utf8_is_decoded_by_the_gateway(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path
) -> None:
    (tmp_path / "tea.txt").write_bytes("Thé à cinq heures.".encode("windows-1252"))
    assert memloop("read", str(tmp_path / "tea.txt"), "When?").exit_code == 0
    assert document(gateway) == {"file_id": "file-1"}


def test_documents_that_all_lack_a_text_are_refused(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    gateway.unreadable = {"a.pdf"}
    result = memloop("read", str(folder / "a.pdf"), "What?")
    assert (result.exit_code, lines(result)[-1]) == (2, "memloop: none of the documents has a text")


def test_a_url_is_fetched_by_the_gateway(memloop: Memloop, gateway: FakeGateway) -> None:
    assert memloop("read", "https://example.org/a.html", "What?").exit_code == 0
    (body,) = gateway.bodies("/v1/files/from-url")
    assert body["url"] == "https://example.org/a.html"
    assert document(gateway) == {"file_id": "file-1"}


def test_a_pdf_on_standard_input_is_uploaded(memloop: Memloop, gateway: FakeGateway) -> None:
    assert memloop("read", "-", "What?", typed="%PDF-1.7 piped").exit_code == 0
    assert gateway.uploads["file-1"] == ("standard-input.pdf", b"%PDF-1.7 piped")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_text_in_a_wide_encoding_is_uploaded(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path, encoding: str
) -> None:
    (tmp_path / "tea.txt").write_text("Tea at five.", encoding=encoding)
    assert memloop("read", str(tmp_path / "tea.txt"), "When?").exit_code == 0
    assert [raw.decode(encoding) for _, raw in gateway.uploads.values()] == ["Tea at five."]


def test_a_long_text_is_uploaded_and_not_sent_with_the_request(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path
) -> None:
    book = tmp_path / "book.txt"
    book.write_text("Call me Ishmael. " * 250_000)
    assert memloop("read", str(book), "Who?").exit_code == 0
    assert document(gateway) == {"file_id": "file-1"}


def test_a_background_read_prints_its_id_alone(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    result = memloop("read", str(folder / "notes.md"), "What?", "--background")
    assert lines(result)[-1] == "lr_1"
    assert document(gateway) == {"file_id": "file-1"}


@pytest.mark.parametrize("name", ["lr_1", "last"])
def test_a_queued_read_is_resumed_to_its_end(memloop: Memloop, name: str) -> None:
    result = memloop("read", "--resume", name)
    assert result.exit_code == 0
    assert "answer  482" in result.output


def test_a_stream_that_breaks_off_is_taken_up_where_it_ended(memloop: Memloop, gateway: FakeGateway) -> None:
    gateway.breaks = 1
    result = memloop("read", "--resume", "lr_1")
    assert result.exit_code == 0
    followed = [fields for path, fields in gateway.asked if path == "/v1/long-read/lr_1"]
    assert [fields["starting_after"] for fields in followed] == ["-1", "1"]


def test_questions_come_from_a_file(memloop: Memloop, gateway: FakeGateway, folder: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text("Who?\n\n Where? \n")
    assert memloop("read", str(folder), "--questions", str(questions)).exit_code == 0
    assert gateway.bodies("/v1/long-read")[-1]["questions"] == ["Who?", "Where?"]


def test_json_is_the_read_and_nothing_else(memloop: Memloop, folder: Path) -> None:
    result = memloop("read", str(folder), "What?", "--json")
    read = json.loads(result.stdout)
    assert (read["output_text"], read["status"]) == ("482", "completed")


def test_evidence_is_printed_with_file_and_page(memloop: Memloop, gateway: FakeGateway, folder: Path) -> None:
    said = {"source": "memory", "text": "The code\nis 482.", "start": 5, "end": 20, "chunk": 0}
    gateway.read = ended(
        "completed",
        evidence=(
            Evidence.model_validate(
                {"statement": "It is 482.", "supported": True, "filename": "a.pdf", "page": 7, **said}
            ),
            Evidence.model_validate({"statement": "It opens.", "supported": True, **said}),
            Evidence(statement="It is blue.", source="memory", supported=False),
        ),
    )
    shown = lines(memloop("read", str(folder), "What?", "--evidence"))
    assert "supported   It is 482." in shown
    assert "a.pdf, page 7: “The code is 482.”" in shown
    assert "supported   It opens." in shown
    assert "characters 5 to 20: “The code is 482.”" in shown
    assert "unsupported It is blue." in shown


@pytest.mark.parametrize(
    ("budget", "sent"), [("300", {"max_llm_calls": 300}), ("10m", {"deadline_s": 600.0}), ("90s", {"deadline_s": 90.0})]
)
def test_a_budget_is_calls_or_time(
    memloop: Memloop, gateway: FakeGateway, folder: Path, budget: str, sent: dict[str, object]
) -> None:
    memloop("read", str(folder), "What?", "--budget", budget)
    body = gateway.bodies("/v1/long-read")[-1]
    assert {name: body[name] for name in ("max_llm_calls", "deadline_s") if name in body} == sent


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["What?"], "name a document, and at last the question"),
        (["no-such-file", "What?"], "there is no file no-such-file"),
        (["*.nothing", "What?"], "there is no file *.nothing"),
        (["--resume", "lr_1", "What?"], "--resume takes an id and nothing else"),
        ([".", "What?", "--budget", "much"], "--budget takes a number of calls"),
        (["x", "--questions", "no-such-file"], "no-such-file cannot be read as text"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(
    memloop: Memloop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = memloop("read", *arguments)
    (line,) = lines(result)
    assert result.exit_code == 2
    assert line.startswith(f"memloop: {reason}")


def test_a_folder_without_documents_is_refused(memloop: Memloop, tmp_path: Path) -> None:
    result = memloop("read", str(tmp_path), "What?")
    assert (result.exit_code, lines(result)) == (
        2,
        [f"memloop: the folder {tmp_path} holds no document that can be read"],
    )


def test_a_folders_files_without_an_extension_are_read_if_they_are_text(
    memloop: Memloop, gateway: FakeGateway, folder: Path
) -> None:
    (folder / "README").write_text("Read me.")
    (folder / "program").write_bytes(b"\x7fELF\0\0")
    result = memloop("read", str(folder), "What?")
    assert b"Read me." in [raw for _, raw in gateway.uploads.values()]
    assert f"left out  {folder}/program: not a kind of document that is read" in result.output


@pytest.mark.parametrize(
    "raw",
    [
        "Größe".encode("utf-16-le"),
        "東京".encode("iso2022_jp"),
        b"<!DOCTYPE html><p>Tea",
        b"{\\rtf1 Tea}",
        b"BEGIN:VCARD\n",
    ],
    ids=["UTF-16 without a mark", "ISO-2022-JP", "a page", "RTF", "a card"],
)
def test_a_file_from_which_the_gateway_takes_the_text_is_uploaded_whatever_its_name(
    memloop: Memloop, gateway: FakeGateway, folder: Path, raw: bytes
) -> None:
    (folder / "one").write_bytes(raw)
    memloop("read", str(folder / "one"), "What?")
    assert [each for _, each in gateway.uploads.values()] == [raw]
