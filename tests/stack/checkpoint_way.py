"""The processes of a checkpoint's way to production: two launchers, a stack on both, clients that never stop."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment, end, wait_for

REPOSITORY = Path(__file__).parents[2]
TRAINER = REPOSITORY / ".venv-trainer/bin/python"
INCUMBENT, CANDIDATE = "memloop-tiny", "memloop-tiny-next"
START_S = 400.0
_MODELS = """
[roles]
writer = "{incumbent}"
reader = "{incumbent}"
chat = "{incumbent}"
"""
_MODEL = """
[models.{id}]
engine_url = "http://127.0.0.1:{engine}/v1"
inference_url = "http://127.0.0.1:{launcher}"
"""


@dataclass
class Table:
    """The steps of the way, with their seconds."""

    rows: list[str] = field(default_factory=list[str])

    @contextmanager
    def step(self, name: str) -> Generator[list[str]]:
        """A step; what the block puts into the list is its result."""
        began, result = time.monotonic(), list[str]()
        yield result
        self.rows.append(f"{name:<34} {time.monotonic() - began:>7.1f} s  {' '.join(result)}")
        print(self.rows[-1], flush=True)


@dataclass
class Places:
    """The ports of everything, and the gateway's address."""

    gateway: int = field(default_factory=lambda: free_port(*range(1, 8)))
    launchers: dict[str, int] = field(default_factory=lambda: {INCUMBENT: free_port(1), CANDIDATE: free_port(1)})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.gateway}"

    def launcher_url(self, model: str) -> str:
        return f"http://127.0.0.1:{self.launchers[model]}"

    def write_models(self, path: Path) -> Path:
        """The models file: every role is the incumbent's, and the candidate is not there yet."""
        tables = [_MODEL.format(id=id_, engine=port + 1, launcher=port) for id_, port in self.launchers.items()]
        path.write_text(_MODELS.format(incumbent=INCUMBENT) + "".join(tables))
        return path


def run(
    command: Sequence[str | Path], *, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """A command of the repository to its end."""
    return subprocess.run(
        [str(part) for part in command],
        env=clean_environment(**(environment or {})),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def python(*arguments: str | Path, **environment: str) -> str:
    """What ``python -m …`` of the workspace prints. Raises AssertionError when it fails."""
    done = run([sys.executable, "-m", *arguments], environment=environment)
    assert done.returncode == 0, f"{arguments}: {done.stderr[-3000:]}"
    return done.stdout


@contextmanager
def launcher(
    places: Places, model: str, folder: Path, *, weights: Path | None = None
) -> Generator["subprocess.Popen[bytes]"]:
    """The launcher of a model meanwhile, with real vLLM; it is ready at the block's beginning."""
    port = places.launchers[model]
    environment = {
        "MEMLOOP_PORT": str(port),
        "MEMLOOP_ENGINE_PORT": str(port + 1),
        "MEMLOOP_MODEL": INCUMBENT,
        "MEMLOOP_SERVE_NAME": model,
        **({"MEMLOOP_MODEL_PATH": str(weights)} if weights else {}),
    }
    log = folder / f"{model}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "inference.main"],
            env=clean_environment(**environment),
            cwd=REPOSITORY,
            stdout=output,
            stderr=output,
        )
    try:
        wait_for(
            lambda: _ready(process, places.launcher_url(model), log), f"the launcher of {model}", timeout_s=START_S
        )
        yield process
    finally:
        end(process)


def _ready(process: "subprocess.Popen[bytes]", url: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()[-3000:]
    return ask(f"{url}/readyz")[0] == 200


@contextmanager
def stack(places: Places, home: Path, models: Path) -> Generator[None]:
    """Redis, store, gateway and worker of ``memloop up`` meanwhile."""
    environment = {"MEMLOOP_HOME": str(home), "MEMLOOP_MODELS": str(models)}
    python("memloop_cli", "up", "--detach", "--port", str(places.gateway), **environment)
    try:
        yield
    finally:
        python("memloop_cli", "down", **environment)


def ask(url: str, body: object = None, *, method: str | None = None) -> tuple[int, Any]:
    """The status and the JSON of an answer; status 0 when nobody answers."""
    raw = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, raw, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, None


def text_of(url: str) -> str:
    """The text of an answer."""
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.read().decode()


@dataclass
class Clients:
    """Users whose chats name the incumbent; ``failed`` are answers that are not 200."""

    url: str
    asked: int = 0
    failed: int = 0
    by: dict[str, int] = field(default_factory=dict[str, int])
    _stop: threading.Event = field(default_factory=threading.Event)

    def chat(self, user: str) -> int:
        """A short chat without memory."""
        body = {
            "model": INCUMBENT,
            "messages": [{"role": "user", "content": "Hello there."}],
            "max_tokens": 4,
            "user": user,
            "memory": {"mode": "off"},
        }
        status, answer = ask(f"{self.url}/v1/chat/completions", body)
        self.asked += 1
        self.failed += status != 200
        if status == 200:
            self.by[answer["model"]] = self.by.get(answer["model"], 0) + 1
        return status

    def _on_and_on(self, number: int) -> None:
        turn = 0
        while not self._stop.is_set():
            self.chat(f"user-{number}-{turn % 50}")
            turn += 1

    @contextmanager
    def busy(self) -> Generator[None]:
        """Two of them chat meanwhile, one chat after the other."""
        self._stop.clear()
        threads = [threading.Thread(target=self._on_and_on, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()


def promote(
    places: Places, candidate: Path, rows: Path, out: Path, *, on_line: Callable[[str], None] = lambda line: None
) -> tuple[int, str]:
    """``python -m trainer promote``; its exit status and what it printed on stderr, each line as it comes."""
    command = [sys.executable, "-m", "trainer", "promote", "--candidate", candidate, "--incumbent", INCUMBENT]
    command += ["--gateway", places.url, "--inference", places.launcher_url(CANDIDATE), "--held-out", rows]
    command += ["--incumbent-inference", places.launcher_url(INCUMBENT), "--name", CANDIDATE, "--source", candidate]
    command += ["--margin", "0.2", "--out", out, "--stages", "0.2,0.6", "--min-calls", "40", "--poll-s", "0.5"]
    # Two processes share two cores with the clients: durations say little here.
    command += ["--max-slowdown", "5", "--stage-timeout-s", "300"]
    lines: list[str] = []
    with subprocess.Popen(
        [str(part) for part in command],
        cwd=REPOSITORY,
        env=os.environ,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        for line in process.stderr or ():
            lines.append(line)
            on_line(line)
    return process.returncode, "".join(lines)
