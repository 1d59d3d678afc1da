#!/opt/memloop/bin/python
"""Stands in for vLLM under our launcher: takes its command line, answers by script, and counts as vLLM's metrics do."""

import os
import sys
import threading
from http.server import ThreadingHTTPServer
from typing import Final

from tests.deploy.stack.scripted_engine import ScriptedHandler

_METRICS: Final = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} {running}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="m"}} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.1
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="m"}} {generated}
"""


class _Engine(ScriptedHandler):
    key = ""
    running = 0
    generated = 0
    _lock = threading.Lock()

    def do_GET(self) -> None:  # noqa: N802 - its name in the base
        if self.path == "/health":
            self.send("{}")
        elif self.path == "/metrics":
            self.send(_METRICS.format(running=_Engine.running, generated=_Engine.generated), "text/plain")
        elif self._allowed():
            super().do_GET()

    def do_POST(self) -> None:  # noqa: N802 - its name in the base
        if not self._allowed():
            return
        self._count(1, 0)
        try:
            super().do_POST()
        finally:
            self._count(-1, 1)

    def _count(self, running: int, generated: int) -> None:
        with _Engine._lock:
            _Engine.running += running
            _Engine.generated += generated

    def _allowed(self) -> bool:
        if not self.key or self.headers.get("authorization") == f"Bearer {self.key}":
            return True
        self.send_error(401)
        return False


def option(name: str, default: str) -> str:
    """The word after an option of the command line."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def main() -> None:
    """Serve until the launcher ends it."""
    _Engine.model = option("--served-model-name", "m")
    _Engine.key = os.environ.get("VLLM_API_KEY", "")
    ThreadingHTTPServer((option("--host", "127.0.0.1"), int(option("--port", "0"))), _Engine).serve_forever()


if __name__ == "__main__":
    main()
