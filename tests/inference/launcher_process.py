"""The launcher as a process, with a fake engine's script in the place of the engine's Python."""

import http.client
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Protocol, cast
from uuid import uuid4

from tests.fakes import engine_process
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S, clean_environment, is_running, kill_pid, pids_in, wait_for


class Launcher:
    """A running ``inference.main``."""

    def __init__(
        self, checkpoint: Path, behaviour: str = "ready", *, ports: tuple[int, int] | None = None, **settings: str
    ) -> None:
        self.port, self.engine_port = ports or (free_port(), free_port())
        self.pids_file = checkpoint.parent / f"pids-{uuid4().hex}"
        environment = clean_environment(
            FAKE_ENGINE=behaviour,
            FAKE_ENGINE_PIDS=str(self.pids_file),
            MEMLOOP_MODEL=str(checkpoint),
            MEMLOOP_PROFILE="tiny",
            MEMLOOP_ENGINE="vllm-cpu",
            MEMLOOP_SERVE_TOOL_CALL_PARSER="hermes",
            MEMLOOP_PORT=str(self.port),
            MEMLOOP_ENGINE_PORT=str(self.engine_port),
            MEMLOOP_SERVE_PYTHON=engine_process.__file__,
            MEMLOOP_SERVE_STOP_TIMEOUT_S="1",
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "inference.main"],
            env=environment | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def engine_url(self) -> str:
        return f"http://127.0.0.1:{self.engine_port}/v1"

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except (OSError, http.client.HTTPException):  # not there, or gone in mid-answer
            return 0, ""

    def json(self, path: str) -> dict[str, object]:
        return cast(dict[str, object], json.loads(self.get(path)[1]))

    def generated(self) -> int:
        """How many tokens the engine itself counts, one for each chat."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.engine_port}/metrics", timeout=PATIENCE_S) as answer:
            lines = answer.read().decode().splitlines()
        return next(int(line.split()[-1]) for line in lines if line.startswith("vllm:generation_tokens_total"))

    def wait_until(self, path: str, status: int) -> None:
        wait_for(lambda: self.get(path)[0] == status or self.process.poll() is not None, f"{status} of {path}")
        assert self.process.poll() is None, self.process.communicate()

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err

    def orphans(self) -> list[int]:
        return [pid for pid in pids_in(self.pids_file) if is_running(pid)]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        for pid in self.orphans() if self.pids_file.is_file() else ():
            kill_pid(pid)


class Start(Protocol):
    """Starts a launcher that the test's end closes."""

    def __call__(
        self, behaviour: str = "ready", *, ports: tuple[int, int] | None = None, **settings: str
    ) -> Launcher: ...
