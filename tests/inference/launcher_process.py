"""The launcher as a process, with a fake engine's script in the place of the engine's Python."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Protocol, cast

from tests.fakes import engine_process
from tests.fakes.processes import clean_environment, is_running, pids_in, wait_for
from tests.fakes.redis_server import free_port


class Launcher:
    """A running ``inference.main``."""

    def __init__(
        self, checkpoint: Path, behaviour: str = "ready", *, ports: tuple[int, int] | None = None, **settings: str
    ) -> None:
        self.port, self.engine_port = ports or (free_port(), free_port())
        self.pids_file = checkpoint.parent / "pids"
        environment = clean_environment(
            FAKE_ENGINE=behaviour,
            FAKE_ENGINE_PIDS=str(self.pids_file),
            MEMLOOP_MODEL=str(checkpoint),
            MEMLOOP_PROFILE="tiny",
            MEMLOOP_ENGINE="vllm-cpu",
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
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except OSError:
            return 0, ""

    def json(self, path: str) -> dict[str, object]:
        return cast(dict[str, object], json.loads(self.get(path)[1]))

    def wait_until(self, path: str, status: int) -> None:
        wait_for(lambda: self.get(path)[0] == status or self.process.poll() is not None, f"{status} of {path}")
        assert self.process.poll() is None, self.process.communicate()

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def orphans(self) -> list[int]:
        return [pid for pid in pids_in(self.pids_file) if is_running(pid)]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        for pid in self.orphans() if self.pids_file.is_file() else ():
            os.kill(pid, signal.SIGKILL)


class Start(Protocol):
    """Starts a launcher that the test's end closes."""

    def __call__(
        self, behaviour: str = "ready", *, ports: tuple[int, int] | None = None, **settings: str
    ) -> Launcher: ...
