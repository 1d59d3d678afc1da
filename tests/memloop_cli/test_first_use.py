"""The first minutes with ``memloop``: whatever is wrong is one sentence, without a traceback and without a secret."""

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.fakes.authority import Authority
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S, clean_environment

KEY = "sk-hunter2hunter2"


class Page(BaseHTTPRequestHandler):
    """A web site, where an engine or a gateway was expected."""

    def do_GET(self) -> None:
        self._answer(b"<!doctype html><title>Welcome</title>", "text/html")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        del format, args


class Models(Page):
    """A gateway's list of models."""

    def do_GET(self) -> None:
        self._answer(b'{"object": "list", "data": [{"id": "tiny", "object": "model"}]}', "application/json")


def serving(handler: type[Page], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def web_site() -> Iterator[str]:
    yield from serving(Page)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def gateway_by_tls(authority: Authority) -> Iterator[str]:
    own = authority.issue("gateway")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own.chain, own.key)
    yield from serving(Models, tls)


def memloop(
    *arguments: str, after: str = "", folder: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """The program with these arguments, ``after`` some Python."""
    program = f"{after}import sys, memloop_cli.__main__ as m; sys.argv[0] = 'memloop'; m.main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments],
        cwd=folder,
        env=clean_environment(**variables),
        capture_output=True,
        timeout=PATIENCE_S * 2,
        check=False,
    )


def sentence(done: subprocess.CompletedProcess[bytes], *, code: int = 1) -> str:
    said = (done.stdout + done.stderr).decode()
    assert "Traceback" not in said
    assert (done.returncode, said.count("\n")) == (code, 1), said
    return said


def up(home: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return memloop("up", "--home", str(home), "--port", str(free_port(*range(1, 6))), *more, folder=None, **variables)


@pytest.mark.parametrize("model", [("--model", "m"), ()], ids=["with a model", "without"])
def test_a_web_site_is_no_engine(tmp_path: Path, web_site: str, model: tuple[str, ...]) -> None:
    done = up(tmp_path / "home", "--engine-url", f"{web_site}/v1", *model, MEMLOOP_ENGINE_API_KEY=KEY)
    said = sentence(done, code=1 if model else 2)
    assert f"{web_site}/v1" in said
    assert KEY not in said


def test_an_engines_certificate_that_is_refused_is_named(tmp_path: Path, gateway_by_tls: str) -> None:
    said = sentence(up(tmp_path / "home", "--engine-url", f"{gateway_by_tls}/v1", "--model", "m"))
    assert "its certificate is refused" in said
    assert "MEMLOOP_CONNECT_CA" in said


@pytest.mark.parametrize("more", [(), ("--detach",)], ids=["in front", "detached"])
def test_a_home_that_cannot_be_made_is_named(tmp_path: Path, web_site: str, more: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    said = sentence(up(tmp_path / "file" / "home", "--no-check", "--engine-url", web_site, *more))
    assert said.startswith(f"memloop: {tmp_path}/file/home")


def test_a_disk_that_takes_no_more_is_named(tmp_path: Path, web_site: str) -> None:
    small = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); "
    done = up(tmp_path / "home", "--no-check", "--engine-url", web_site, after=small)
    assert sentence(done) == "memloop: File too large\n"


def test_without_an_engine_one_sentence_names_three_ways_to_one(tmp_path: Path) -> None:
    without = "import sys; sys.modules.update(dict.fromkeys(('vllm', 'sglang', 'openvino_genai'))); "
    said = sentence(memloop("up", "--home", str(tmp_path / "home"), after=without))
    assert all(way in said for way in ("--engine-url URL", "'memloop-cli[small]'", "'memloop-cli[engine-cpu]'")), said
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("delay_s", [0.05, 0.2, 0.5, 1.0, 2.0])
def test_ctrl_c_in_the_first_seconds_leaves_no_traceback(tmp_path: Path, web_site: str, delay_s: float) -> None:
    arguments = ["up", "--home", str(tmp_path), "--engine-url", web_site, "--no-check"]
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", "print(flush=True); import memloop_cli.__main__ as m; m.main()", *arguments],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert child.stdout is not None
    child.stdout.readline()  # Python itself has started
    time.sleep(delay_s)
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=PATIENCE_S * 2)[0].decode()
    assert "Traceback" not in said, said
    assert child.returncode in (-signal.SIGINT, 130, 0)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode_shows_escapes(tmp_path: Path, encoding: str) -> None:
    done = memloop("down", "--home", str(tmp_path / "\u4e2d"), PYTHONIOENCODING=encoding)
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False)
    assert b"\\u4e2d" in done.stderr


def test_a_misspelt_variable_is_named_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    done = up(tmp_path / "home", "--no-check", MEMLOOP_ENGIN_URL=f"http://{KEY}@x/v1", MEMLOOP_WRITER="x")
    assert done.stdout.decode() == "MEMLOOP_ENGIN_URL is not a setting; did you mean MEMLOOP_ENGINE_URL?\n"
    assert done.stderr.decode() == f"memloop: {tmp_path}/home: File exists\n"


def test_a_bad_value_is_named_without_it(tmp_path: Path, web_site: str) -> None:
    secret = "whsec_hunter2"
    done = up(tmp_path, "--no-check", "--engine-url", web_site, MEMLOOP_WEBHOOK_SECRET=secret)
    said = (done.stdout + done.stderr).decode()
    assert (done.returncode, "Traceback" in said) == (1, False)
    assert "MEMLOOP_WEBHOOK_SECRET" in said
    logs = "".join(log.read_text() for log in (tmp_path / "logs").iterdir())
    assert secret not in said + logs


def test_no_module_of_the_users_folder_is_run(tmp_path: Path, web_site: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("random", "types", "http", "secrets", "queue", "email", "redis", "gateway"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    where = ("--home", str(tmp_path / "home"), "--port", str(free_port(*range(1, 6))))
    done = memloop("up", "--detach", "--no-check", "--engine-url", web_site, "--model", "m", *where, folder=folder)
    assert not (tmp_path / "ran").exists()
    logs = {log.name: log.read_text() for log in (tmp_path / "home" / "logs").iterdir()}
    assert {"gateway.log", "store.log", "worker.log"} <= set(logs), (done.stdout, done.stderr)
    memloop("down", *where[:2], folder=folder)


def test_status_asks_a_gateway_by_tls(authority: Authority, gateway_by_tls: str) -> None:
    refused = sentence(memloop("status", "--url", gateway_by_tls))
    assert "its certificate is refused" in refused
    trusted = memloop("status", "--url", gateway_by_tls, MEMLOOP_CONNECT_CA=str(authority.file))
    assert (trusted.returncode, b"models   tiny" in trusted.stdout) == (0, True), trusted.stderr
    wrong = memloop("status", "--url", gateway_by_tls, MEMLOOP_CONNECT_CA=os.devnull)
    assert "MEMLOOP_CONNECT_CA" in sentence(wrong, code=2)
