"""A model behind the OpenAI API that plays the smoke test by script, on an address that containers reach."""

import contextlib
import json
import re
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.fakes.job_engine import add_memory

MODEL: Final = "scripted"
_TURN: Final = re.compile(r"^\[user\](?: \(\w+ [\d: -]+\))?: (.+)$", re.MULTILINE)
_FACT: Final = re.compile(r"\w+ (?:vault|locker) code(?: of \w+)? is \d{3}\.")


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """The memory writer keeps each turn; a chat or a read repeats the first code that its prompt names."""
    prompt = "\n".join(str(message.get("content")) for message in body["messages"])
    if body.get("tools"):
        return add_memory(*(_TURN.findall(prompt) or [prompt[-200:]]))
    if "<memories>\nNew memory " in prompt:
        return {"role": "assistant", "content": ""}  # no memory changes another
    found = _FACT.search(prompt)
    return {"role": "assistant", "content": found[0] if found else "Nothing yet."}


class ScriptedHandler(BaseHTTPRequestHandler):
    """Models and chats; ``model`` is the id that it serves."""

    protocol_version = "HTTP/1.1"
    model = MODEL

    def do_GET(self) -> None:
        self.send(json.dumps({"object": "list", "data": [{"id": self.model, "object": "model"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = reply(body)
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        if body.get("stream"):
            choices = [{"index": 0, "delta": message, "finish_reason": reason}]
            chunk = {"object": "chat.completion.chunk", "choices": choices}
            self.send(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", "text/event-stream")
            return
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        choices = [{"index": 0, "message": message, "finish_reason": reason}]
        self.send(json.dumps({"id": "x", "object": "chat.completion", "choices": choices, "usage": usage}))

    def send(self, answer: str, kind: str = "application/json") -> None:
        """Send a whole answer."""
        data = answer.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        """Say nothing."""


@contextlib.contextmanager
def scripted_engine(address: str) -> Generator[int]:
    """The engine on this address of the machine; gives its port."""
    server = ThreadingHTTPServer((address, 0), ScriptedHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
