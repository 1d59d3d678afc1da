"""A published checkpoint on its way into the model cache: checksums, resumption, interrupted and wrong uploads."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from inference.fetch import FetchError, fetch
from memloop.wire.checkpoint import FILES
from tests.trainer.gate_rig import write_record
from trainer.rollout.publish import PublishError, publish, published

WEIGHTS = bytes(range(256)) * 40_000


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """A folder that looks like an export of ten megabytes."""
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    write_record(folder, step=1)
    return folder


@pytest.fixture
def url(tmp_path: Path, export: Path) -> str:
    """Where the export was published."""
    address = f"file://{tmp_path}/bucket/step-1"
    published(export, address)
    return address


def test_a_fetched_checkpoint_is_the_exported_one(url: str, export: Path, tmp_path: Path) -> None:
    fetched = fetch(url, tmp_path / "cache")
    for file in export.iterdir():
        assert (tmp_path / "cache" / file.name).read_bytes() == file.read_bytes()
    assert (fetched.kept_bytes, fetched.loaded_bytes) == (0, sum(file.stat().st_size for file in export.iterdir()))


def test_a_second_fetch_loads_nothing(url: str, tmp_path: Path) -> None:
    fetch(url, tmp_path / "cache")
    assert fetch(url, tmp_path / "cache").loaded_bytes == 0


def test_a_partial_file_is_continued(url: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "model.safetensors.part").write_bytes(WEIGHTS[:9_000_000])
    assert fetch(url, cache).loaded_bytes < len(WEIGHTS) - 9_000_000 + 10_000
    assert (cache / "model.safetensors").read_bytes() == WEIGHTS


def test_a_file_with_another_checksum_is_not_put_in_place_and_the_next_fetch_begins_again(
    url: str, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "model.safetensors.part").write_bytes(b"x" * 1000)
    with pytest.raises(FetchError, match=r"model.safetensors has the checksum"):
        fetch(url, cache)
    assert not (cache / "model.safetensors").exists()
    assert not (cache / FILES).exists()
    fetch(url, cache)
    assert (cache / "model.safetensors").read_bytes() == WEIGHTS


def test_a_file_that_was_damaged_in_an_incomplete_cache_is_loaded_again(url: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "model.safetensors").write_bytes(b"x" * len(WEIGHTS))
    fetch(url, cache)
    assert (cache / "model.safetensors").read_bytes() == WEIGHTS


def test_an_upload_that_has_not_ended_is_refused(url: str, tmp_path: Path) -> None:
    (tmp_path / "bucket/step-1" / FILES).unlink()
    with pytest.raises(FetchError, match="the upload has not ended"):
        fetch(url, tmp_path / "cache")


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/b", ".hidden", FILES])
def test_a_list_that_names_a_file_elsewhere_is_refused(url: str, tmp_path: Path, name: str) -> None:
    row = {"size": 1, "sha256": "0" * 64}
    (tmp_path / "bucket/step-1" / FILES).write_text(json.dumps({"files": {name: row}}))
    with pytest.raises(FetchError, match="not a list of files"):
        fetch(url, tmp_path / "cache")
    assert not (tmp_path / "outside").exists()


def test_many_fetches_of_one_cache_load_it_once(url: str, tmp_path: Path) -> None:
    loaded: list[int] = []
    threads = [
        threading.Thread(target=lambda: loaded.append(fetch(url, tmp_path / "cache").loaded_bytes)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(loaded)[:3] == [0, 0, 0]
    assert sorted(loaded)[3] > len(WEIGHTS)


def test_an_address_takes_one_checkpoint(url: str, export: Path) -> None:
    published(export, url)
    (export / "model.safetensors").write_bytes(b"other")
    with pytest.raises(PublishError, match="another checkpoint is there"):
        published(export, url)


def test_only_an_export_is_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        publish([str(tmp_path), f"file://{tmp_path}/bucket"])
    assert ended.value.code == 2
    assert "is not an export" in capsys.readouterr().err


@contextmanager
def flaky_server(folder: Path) -> Generator[tuple[str, list[str]]]:
    """Files over HTTP; the first whole answer of more than a megabyte breaks off in the middle."""
    ranges: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            raw = (folder / self.path.rsplit("/", 1)[-1]).read_bytes()
            asked = self.headers.get("Range", "")
            start = int(asked.removeprefix("bytes=").split("-")[0]) if asked else 0
            body = raw[start:]
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Mon, 05 Jan 2026 00:00:00 GMT")
            self.send_header("ETag", '"1"')
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(raw) - 1}/{len(raw)}")
            self.end_headers()
            breaks = len(raw) > 1_000_000 and not ranges
            if len(raw) > 1_000_000:
                ranges.append(asked)
            self.wfile.write(body[: len(body) // 2] if breaks else body)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by its base
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", ranges
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_download_that_breaks_off_is_continued(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with flaky_server(tmp_path / "bucket/step-1") as (address, ranges):
        for _ in range(3):
            try:
                fetch(address, tmp_path / "cache")
                break
            except FetchError:
                continue
    assert (tmp_path / "cache" / "model.safetensors").read_bytes() == WEIGHTS
    assert ranges[0] == ""
    assert ranges[-1].startswith("bytes=")
