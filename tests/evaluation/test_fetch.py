"""Downloads from a server of our own: resumed, bounded, checked, whole or not there."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evaluation.fetch.command import main
from evaluation.fetch.download import FetchError, fetch
from evaluation.fetch.sources import SOURCES, PublicFile

BODY = b"0123456789" * 1000
DIGEST = hashlib.sha256(BODY).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves one body; may cut it, or ignore ranges."""

    body = BODY
    cut_after: int | None = None
    ranges = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []

    def file(self, *, most_bytes: int = 10**6, sha256: str | None = None) -> PublicFile:
        return PublicFile(f"http://127.0.0.1:{self.server_port}/data.json", "CC0", most_bytes, sha256)


class Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        wanted = self.headers.get("range")
        self.server.asked.append(wanted)
        begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        if begin and begin >= len(self.server.body):
            self.send_error(416)
            return
        rest = self.server.body[begin:]
        self.send_response(206 if begin else 200)
        self.send_header("content-length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: self.server.cut_after])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def test_a_file_arrives_whole_under_its_own_name(server: Server, tmp_path: Path) -> None:
    path, digest = fetch(server.file(), tmp_path)

    assert (path.name, path.read_bytes(), digest) == ("data.json", BODY, DIGEST)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["data.json", "data.json.sha256"]


def test_a_file_that_is_there_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    fetch(server.file(), tmp_path)
    fetch(server.file(), tmp_path)

    assert len(server.asked) == 1


def test_a_cut_download_goes_on_where_it_ended(server: Server, tmp_path: Path) -> None:
    server.cut_after = 4000
    with pytest.raises(FetchError, match="run the command again"):
        fetch(server.file(), tmp_path)
    assert not (tmp_path / "data.json").exists()
    server.cut_after = None

    path, _ = fetch(server.file(), tmp_path)

    assert path.read_bytes() == BODY
    assert server.asked == [None, "bytes=4000-"]


def test_a_server_without_ranges_sends_all_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.json.part").write_bytes(b"x" * 100)
    server.ranges = False

    path, _ = fetch(server.file(), tmp_path)

    assert path.read_bytes() == BODY


def test_a_part_that_is_whole_already_is_taken(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.json.part").write_bytes(BODY)

    assert fetch(server.file(sha256=DIGEST), tmp_path)[1] == DIGEST


def test_a_larger_file_than_expected_is_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="larger than expected"):
        fetch(server.file(most_bytes=100), tmp_path)


def test_another_file_than_the_published_one_is_refused_and_removed(server: Server, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="expected is 00"):
        fetch(server.file(sha256="00"), tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_without_a_published_digest_the_first_file_decides(server: Server, tmp_path: Path) -> None:
    path, _ = fetch(server.file(), tmp_path)
    path.unlink()
    server.body = b"changed"

    with pytest.raises(FetchError, match=f"expected is {DIGEST}"):
        fetch(server.file(), tmp_path)


def test_a_refusal_of_the_server_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="run the command again"):
        fetch(PublicFile("http://127.0.0.1:9/data.json", "CC0", 10), tmp_path)


def test_the_list_names_every_file_with_its_licence(capsys: pytest.CaptureFixture[str]) -> None:
    main([])

    shown = capsys.readouterr().out
    assert all(name in shown and source.licence in shown for name, source in SOURCES.items())
