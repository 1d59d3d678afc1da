"""A short load that uses all of the stack: chats, streams, memory, reads, and some things that fail."""

import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

MODEL = "memloop-tiny"
NO_ANSWER = 0
"""Stands for a status."""
ANSWER_S = 120.0
_PROSE = "The whale swam on, and the ship went after it through the night. " * 60
_DOCUMENT = f"{_PROSE}The vault code of Marta is 731. {_PROSE}"
_READ = {"model": MODEL, "question": "What is the vault code of Marta?", "document": {"text": _DOCUMENT}}


class Load:
    """Requests to the gateway in three threads, each one after another: none waits for another's service."""

    def __init__(self, gateway: str, webhook: str) -> None:
        self._gateway = gateway
        self._webhook = webhook
        self._stop = threading.Event()
        self.statuses: list[tuple[str, int]] = []

    def _post(self, path: str, **body: object) -> None:
        data = json.dumps(body).encode()
        request = urllib.request.Request(self._gateway + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                answer.read()
                self.statuses.append((path, answer.status))
        except urllib.error.HTTPError as refused:
            self.statuses.append((path, refused.code))
        except (OSError, http.client.HTTPException):  # no answer in time, or half of one: the load goes on
            self.statuses.append((path, NO_ANSWER))

    def _chat(self, text: str, model: str = MODEL, **more: object) -> None:
        messages = [{"role": "user", "content": text}]
        self._post("/v1/chat/completions", model=model, messages=messages, max_tokens=24, **more)

    def _talk(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            memory = {"user_id": f"user-{number % 3}"}
            self._chat(f"My locker code is {100 + number}.", memory=memory)
            self._chat("What is my locker code?", memory=memory, stream=True, stream_options={"include_usage": True})
            self._chat("Hello.")
            self._chat("Hello.", model="no-such-model")

    def _remember(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            self._post("/v1/memory/search", query="locker code", user_id=f"user-{number % 3}")
            told = [{"role": "user", "content": f"My tram number is {number}."}]
            self._post("/v1/memory/add", messages=told, user_id="user-0")
            self._post("/v1/memory/add", messages=told, user_id="user-1", infer=False)
            self._post("/v1/memory/search", query="", user_id="")
            self._stop.wait(1)

    def _read(self) -> None:
        while not self._stop.is_set():
            self._post("/v1/long-read", **_READ)
            self._post("/v1/long-read", **_READ, strategy="memreread", max_rereads=1)
            self._post("/v1/long-read", **_READ, background=True, webhook={"url": self._webhook})
            self._post("/v1/long-read", **{**_READ, "model": "no-such-model"})
            self._stop.wait(1)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The load, meanwhile."""
        threads = [threading.Thread(target=work) for work in (self._talk, self._remember, self._read)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
