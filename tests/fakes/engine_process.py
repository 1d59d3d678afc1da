#!/usr/bin/env python3
"""An engine's process without a model: takes vLLM's or SGLang's command line and answers like it.

``FAKE_ENGINE`` says how it behaves: ``ready`` (default), ``dies`` (at once, with last words), ``hangs`` (never
answers), ``stubborn`` (ready, and deaf to SIGTERM), ``other-model``, ``no-memory`` (dies as vLLM does without room for
its cache), ``holds`` (warms up, then answers no chat until the file ``FAKE_ENGINE_RELEASE`` is there). While a chat is
held, its token counter stands still. ``FAKE_ENGINE_PIDS`` names a file for its pid and its worker's: it starts a worker
process of its own, as vLLM does. Only the standard library, so it starts at once.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_METRICS = """\
# HELP vllm:num_requests_running Running.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} {running}
# HELP vllm:num_requests_waiting Waiting.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="m"}} 0.0
# HELP vllm:kv_cache_usage_perc Used.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.25
# HELP vllm:generation_tokens_total Generated.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="m"}} {generated}
vllm:generation_tokens_created{{engine="0",model_name="m"}} 1.7e9
"""
_OUT_OF_MEMORY = (
    "ValueError: To serve at least one request, 2.0 GiB is needed, larger than the available KV cache memory (0.5 GiB)."
)
_TRACEBACK_LINES = 60


def option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def write_whole(file: Path, text: str) -> None:
    """Write it so that no reader finds half of it, though this process may be killed meanwhile."""
    part = file.with_suffix(".part")
    part.write_text(text)
    part.rename(file)


class Engine(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = ""
    window = 0
    key: str | None = None
    release: Path | None = None
    running = 0
    generated = 0

    def do_GET(self) -> None:
        if self.path == "/metrics":
            told = _METRICS.format(running=Engine.running, generated=Engine.generated)
            self._answer(200, told.encode(), "text/plain")
        elif self.path.startswith("/v1") and not self._allowed():
            self._json(401, {"error": {"message": "no key"}})
        elif self.path == "/v1/models":
            self._json(200, {"object": "list", "data": [{"id": self.model, "max_model_len": self.window}]})
        else:
            self._json(200 if self.path == "/health" else 404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        print(f"chat {json.dumps(sorted(json.loads(body)))}", flush=True)
        Engine.running += 1
        while b"Warm-up." not in body and self.release is not None and not self.release.exists():
            time.sleep(0.02)
        Engine.running -= 1
        Engine.generated += 1
        message = {"role": "assistant", "content": "Fake."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._json(200, {"id": "c", "object": "chat.completion", "model": self.model, "choices": [choice]})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """No access log."""

    def _allowed(self) -> bool:
        return self.key is None or self.headers.get("authorization") == f"Bearer {self.key}"

    def _json(self, status: int, body: object) -> None:
        self._answer(status, json.dumps(body).encode(), "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    behaviour = os.environ.get("FAKE_ENGINE", "ready")
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if "FAKE_ENGINE_PIDS" in os.environ:
        write_whole(Path(os.environ["FAKE_ENGINE_PIDS"]), f"{os.getpid()} {worker.pid}")
    print(
        f"offline={os.environ.get('HF_HUB_OFFLINE')} telemetry off={os.environ.get('VLLM_NO_USAGE_STATS')}", flush=True
    )
    if behaviour == "dies":
        print("loading weights")
        print("ValueError: no room for the KV cache", file=sys.stderr)
        sys.exit(3)
    if behaviour == "no-memory":
        print(_OUT_OF_MEMORY, *["  File engine.py, line 1"] * _TRACEBACK_LINES, "RuntimeError: see above.", sep="\n")
        sys.exit(1)
    if behaviour == "holds":
        Engine.release = Path(os.environ["FAKE_ENGINE_RELEASE"])
    if behaviour == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if behaviour == "hangs":
        print("still compiling", flush=True)
        threading.Event().wait()
    Engine.model = "another" if behaviour == "other-model" else option("--served-model-name", "m")
    Engine.window = int(option("--max-model-len", option("--context-length", "4096")))
    Engine.key = os.environ.get("VLLM_API_KEY") or option("--api-key", "") or None
    ThreadingHTTPServer(("127.0.0.1", int(option("--port", "0"))), Engine).serve_forever()


if __name__ == "__main__":
    main()
