"""Clients that write while containers die, and remember what was acknowledged."""

import http.client
import itertools
import json
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.deploy.stack.compose import ComposeStack

_PAUSE_S: Final = 0.2
_TIMEOUT_S: Final = 30.0
_GIVE_UP_S: Final = 600.0
_FIRST_CODE: Final = 100


class Refused(RuntimeError):
    """The gateway found fault with a request; it is not sent again."""


@dataclass
class Writer:
    """Adds one text after another, each under an ``Idempotency-Key`` of its own, until it is acknowledged.

    ``infer`` sends them to the queue and the memory writer; else they are stored before they are acknowledged.
    """

    stack: ComposeStack
    user: str
    infer: bool
    pause_s: float
    acknowledged: list[str] = field(default_factory=list[str])
    events: list[str] = field(default_factory=list[str])
    failures: int = 0
    fault: str | None = None

    def run(self, stop: threading.Event) -> None:
        """Until ``stop``; the last text is brought to its end."""
        for number in itertools.count():
            if stop.is_set():
                return
            text = f"My locker code is {_FIRST_CODE + number}."  # of the small world that the tiny model knows
            try:
                self._add(text)
            except Refused as refusal:
                self.fault = str(refusal)
                return
            time.sleep(self.pause_s)

    def _add(self, text: str) -> None:
        body = {"user_id": self.user, "infer": self.infer, "messages": [{"role": "user", "content": text}]}
        key, deadline = uuid.uuid4().hex, time.monotonic() + _GIVE_UP_S
        while time.monotonic() < deadline:
            answer = self._send("/v1/memory/add", body, key)
            if answer is not None:
                self.acknowledged.append(text)
                self.events.append(answer["event_id"])
                return
            self.failures += 1
            time.sleep(_PAUSE_S)
        raise Refused(f"not acknowledged within {_GIVE_UP_S:.0f} s: {text}")

    def _send(self, path: str, body: Mapping[str, Any], key: str) -> dict[str, Any] | None:
        """The answer; None when there was none, or when it says that the stack cannot do it now (409, 429, 5xx)."""
        try:
            return ask(self.stack, "POST", path, body, {"idempotency-key": key})
        except urllib.error.HTTPError as refusal:
            said = refusal.read().decode(errors="replace")
            if refusal.code < 500 and refusal.code not in {409, 429}:
                raise Refused(f"{refusal.code}: {said}") from refusal
            return None
        except (OSError, http.client.HTTPException):
            return None


def ask(
    stack: ComposeStack,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The JSON of an answer. Raises HTTPError above 399, OSError and HTTPException when none comes."""
    return json.loads(raw(stack, method, path, body, headers))


def raw(
    stack: ComposeStack,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """The same, as bytes."""
    known = {"authorization": f"Bearer {stack.api_key}", "content-type": "application/json", **(headers or {})}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(stack.url + path, data=data, headers=known, method=method)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
        return response.read()


def stored(stack: ComposeStack, user: str) -> list[dict[str, Any]]:
    """Every item of a user, raw turns and old versions too."""
    lines = raw(stack, "POST", "/v1/memory/export", {"user_id": user, "include_raw": True}).splitlines()
    told = [json.loads(line) for line in lines]
    items = [line["item"] for line in told if "item" in line]
    if told[-1] != {"exported": len(items)}:
        raise AssertionError(f"the export is not whole: it ends with {told[-1]}, after {len(items)} items")
    return items
