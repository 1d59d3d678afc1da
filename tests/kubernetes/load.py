"""Clients inside the cluster: chats and writes against the gateway, until they are told to stop. Standard library only.

Runs in a pod, from the gateway's image. ``LOAD_URL`` and ``LOAD_KEY`` are the gateway's, ``LOAD_CHATS`` and
``LOAD_WRITES`` numbers of clients. On port 8000, ``GET /report`` returns the counts so far; ``POST /stop`` lets each
client end with what it is at: ``alive`` is then 0; ``POST /check`` takes users and texts, and returns which of them are
lost and which are stored more than once.

A chat is sent once: any failure counts. A write is sent under one Idempotency-Key until it is acknowledged, as our
clients do it; what was acknowledged must be found later. An acknowledged write may be queued only (202), behind one
whose gateway lost Redis meanwhile; its client waits until its event has ended.
"""

import contextlib
import http.client
import itertools
import json
import os
import threading
import time
import urllib.error
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_TIMEOUT_S = 60.0
_GIVE_UP_S = 600.0
_PAUSE_S = 0.05
_BUSY = (409, 429)
_PORT = 8000
_ENDED = ("completed", "kept_verbatim", "failed")
_POLL_S = 0.5


class Refused(RuntimeError):
    """The gateway found fault with a request; it is not sent again."""


class Load:
    """The clients and what they have counted."""

    def __init__(self, url: str, key: str, *, pause_s: float = _PAUSE_S) -> None:
        self._url = url
        self._key = key
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.chats = 0
        self.failures: list[str] = []
        self.acknowledged: list[list[str]] = []
        self.repeated = 0
        self.queued = 0
        self.longest_queued_s = 0.0
        self.longest_s = 0.0

    def start(self, *, chats: int, writes: int) -> None:
        """Start so many clients of each kind."""
        run = uuid.uuid4().hex[:8]
        work = [(self._chat_on, f"chat-{number}") for number in range(chats)]
        work += [(self._write_on, f"write-{run}-{number}") for number in range(writes)]
        self._threads = [threading.Thread(target=one, args=(name,), daemon=True) for one, name in work]
        for thread in self._threads:
            thread.start()

    def report(self) -> dict[str, object]:
        """The counts so far; ``acknowledged`` are users and texts."""
        with self._lock:
            return {
                "chats": self.chats,
                "failures": self.failures[:20],
                "failed": len(self.failures),
                "acknowledged": list(self.acknowledged),
                "repeated": self.repeated,
                "queued": self.queued,
                "longest_queued_s": round(self.longest_queued_s, 1),
                "longest_s": round(self.longest_s, 3),
                "alive": sum(thread.is_alive() for thread in self._threads),
            }

    def stop(self) -> dict[str, object]:
        """Let the clients end; the report so far."""
        self._stop.set()
        return self.report()

    def check(self, written: list[list[str]]) -> dict[str, object]:
        """Look each text up among all that its user has."""
        users = {user: self._stored(user) for user in {user for user, _ in written}}
        counts = [(text, users[user].count(text)) for user, text in written]
        return {
            "lost": [text for text, count in counts if count == 0],
            "doubled": [text for text, count in counts if count > 1],
            "found": sum(count == 1 for _, count in counts),
        }

    def _stored(self, user: str) -> list[str]:
        lines = self._raw("/v1/memory/export", {"user_id": user, "include_raw": True}, {}).splitlines()
        rows = [json.loads(line) for line in lines]
        items = [row["item"]["memory"] for row in rows if "item" in row]
        if rows[-1] != {"exported": len(items)}:
            raise ValueError(f"the export of {user} is not whole: {rows[-1]} after {len(items)} items")
        return items

    def _chat_on(self, name: str) -> None:
        for number in itertools.count():
            if self._stop.is_set():
                return
            began = time.monotonic()
            try:
                self._chat(f"Hello {number} of {name}.")
            except (OSError, http.client.HTTPException, ValueError) as error:
                with self._lock:
                    self.failures.append(_words(error))
            else:
                with self._lock:
                    self.chats += 1
                    self.longest_s = max(self.longest_s, time.monotonic() - began)
            time.sleep(self._pause_s)

    def _chat(self, text: str) -> None:
        body = {"messages": [{"role": "user", "content": text}], "max_tokens": 20, "model": self._model()}
        answer = self._ask("/v1/chat/completions", body, {})
        if not answer["choices"][0]["message"]["content"]:
            raise ValueError("an empty reply")

    def _model(self) -> str:
        return os.environ.get("LOAD_MODEL", "memloop-tiny")

    def _write_on(self, user: str) -> None:
        for number in itertools.count():
            if self._stop.is_set():
                return
            text = f"The locker code of {user} is {number}."
            try:
                self._write(user, text)
            except Refused as refusal:
                with self._lock:
                    self.failures.append(str(refusal))
                return
            time.sleep(self._pause_s)

    def _write(self, user: str, text: str) -> None:
        body = {"user_id": user, "infer": False, "messages": [{"role": "user", "content": text}]}
        headers = {"idempotency-key": uuid.uuid4().hex}
        deadline = time.monotonic() + _GIVE_UP_S
        while time.monotonic() < deadline:
            event = self._acknowledged(body, headers)
            if event is not None:
                with self._lock:
                    self.acknowledged.append([user, text])
                self._await_end(event, deadline)
                return
            with self._lock:
                self.repeated += 1
            time.sleep(0.2)
        raise Refused(f"not acknowledged within {_GIVE_UP_S:.0f} s: {text}")

    def _await_end(self, event: dict, deadline: float) -> None:
        began = time.monotonic()
        if event["status"] in _ENDED:
            return
        with self._lock:
            self.queued += 1
        while event["status"] not in _ENDED and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                event = self._ask(f"/v1/memory/events/{event['event_id']}", None, {})
        with self._lock:
            self.longest_queued_s = max(self.longest_queued_s, time.monotonic() - began)

    def _acknowledged(self, body: dict[str, object], headers: dict[str, str]) -> "dict | None":
        """The event of the write, if it was acknowledged."""
        try:
            return self._ask("/v1/memory/add", body, headers)
        except urllib.error.HTTPError as refusal:
            if refusal.code < 500 and refusal.code not in _BUSY:
                raise Refused(_words(refusal)) from refusal
        except (OSError, http.client.HTTPException, ValueError):
            pass
        return None

    def _ask(self, path: str, body: "dict[str, object] | None", headers: dict[str, str]) -> dict:
        return json.loads(self._raw(path, body, headers))

    def _raw(self, path: str, body: "dict[str, object] | None", headers: dict[str, str]) -> bytes:
        known = {"authorization": f"Bearer {self._key}", "content-type": "application/json", **headers}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data=data, headers=known)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
            return response.read()


def _words(error: BaseException) -> str:
    said = error.read()[:300].decode(errors="replace") if isinstance(error, urllib.error.HTTPError) else ""
    return f"{error!r} {said}".strip()


def serve(load: Load, port: int = _PORT) -> ThreadingHTTPServer:
    """The server of the counts, not yet serving."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(load.report())

        def do_POST(self) -> None:
            given = self.rfile.read(int(self.headers.get("content-length") or 0))
            self._answer(load.check(json.loads(given)) if self.path == "/check" else load.stop())

        def _answer(self, report: dict[str, object]) -> None:
            data = json.dumps(report).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
            """No access log."""

    return ThreadingHTTPServer((os.environ.get("POD_IP", "127.0.0.1"), port), Handler)


def main() -> None:
    """Run until the pod ends."""
    load = Load(os.environ["LOAD_URL"], os.environ["LOAD_KEY"])
    server = serve(load)
    load.start(chats=int(os.environ.get("LOAD_CHATS", "0")), writes=int(os.environ.get("LOAD_WRITES", "0")))
    server.serve_forever()


if __name__ == "__main__":
    main()
