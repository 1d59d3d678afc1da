#!/usr/bin/env python3
"""Tries a running stack from outside, as a client would: health, models, chat, memory, long reads, metrics.

    MEMLOOP_API_KEY=… python3 deploy/smoke.py --url http://127.0.0.1:7800

One line for each check; status 0 when all hold, 1 when one does not, 2 when the arguments are wrong. Needs Python
3.10 or newer and nothing else. What it writes belongs to a user of its own, who is erased at the end.
"""

import argparse
import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_TOLD = "My locker code is 482."
_KEPT = "The sauna opens at seven on Fridays."
_FACT = "The vault code of Marta is 731."
_FILLER = "The whale swam on through the night. Nobody spoke. "
_QUESTION = "What is the vault code of Marta?"
_ENDED = ("completed", "failed", "cancelled", "incomplete")
_POLL_S = 0.25
_ABSENT = 404
_REFUSED = 400
_SHORT: "dict[str, Any]" = {"max_tokens": 200, "chat_template_kwargs": {"enable_thinking": False}}


class CheckFailed(Exception):
    """A check did not hold; the message says what came instead."""


@dataclass(frozen=True)
class Answer:
    """Status and body of a response."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises CheckFailed."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise CheckFailed(f"no JSON came, but {self.body[:200]!r}") from error


@dataclass(frozen=True)
class Stack:
    """The gateway to try; ``timeout_s`` is for one request, and for one thing that is waited for."""

    url: str
    key: str
    user: str
    timeout_s: float

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str | None = None) -> Answer:
        """A request with the key; any status comes back. Raises CheckFailed when nobody answers."""
        shown = self.key if key is None else key
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {shown}"} if shown else {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data=data, headers=headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as response:  # noqa: S310
                return Answer(response.status, response.read())
        except urllib.error.HTTPError as refusal:
            return Answer(refusal.code, refusal.read())
        except OSError as error:
            raise CheckFailed(f"{method} {self.url}{path}: {error}") from error

    def answered(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON of an answer below 400. Raises CheckFailed with what the gateway said."""
        return self.result(self.ask(method, path, body), f"{method} {path}")

    def result(self, answer: Answer, asked: str = "the request") -> Any:
        """The JSON of an answer below 400. Raises CheckFailed with what the gateway said."""
        if answer.status >= 400:
            raise CheckFailed(f"{asked} answered {answer.status}: {answer.body[:500].decode(errors='replace')}")
        return answer.json()

    def wait(self, path: str) -> Any:
        """What ``path`` shows once its status is a last one. Raises CheckFailed after ``timeout_s``."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            found = self.answered("GET", path)
            if found["status"] in _ENDED:
                return found
            if time.monotonic() > deadline:
                raise CheckFailed(f"{path} is still {found['status']} after {self.timeout_s:.0f} s")
            time.sleep(_POLL_S)


def check(held: object, otherwise: str) -> None:
    """Raise CheckFailed unless it held."""
    if not held:
        raise CheckFailed(otherwise)


def health(stack: Stack) -> str:
    """The process lives, and all that it depends on answers."""
    check(stack.ask("GET", "/livez").status == 200, "/livez does not answer 200")
    ready = stack.answered("GET", "/readyz")
    check(ready["status"] == "ok", f"/readyz answers {ready['status']}: {ready['dependencies']}")
    return ", ".join(f"{name} {state}" for name, state in ready["dependencies"].items())


def guard(stack: Stack) -> str:
    """Nobody is served without a key, where there are keys."""
    if not stack.key:
        return "no key was given: the gateway serves its own machine alone"
    status = stack.ask("GET", "/v1/models", key="").status
    check(status == 401, f"without a key /v1/models answers {status}, not 401")
    status = stack.ask("GET", "/v1/models", key="ml_nobody").status
    check(status == 401, f"with a wrong key /v1/models answers {status}, not 401")
    return "401 without a key and with a wrong one"


def models(stack: Stack) -> str:
    """A model is served."""
    return _model(stack)


def chat(stack: Stack) -> str:
    """What is said in one conversation is written by the worker and recalled in the next."""
    memory = {"user_id": stack.user}
    first = chat_as(stack, _TOLD, memory)
    event_id = first["memory"]["write_event_id"]
    check(event_id, f"the turn was not queued: {first['memory']['error']}")
    event = stack.wait(f"/v1/memory/events/{event_id}")
    check(event["status"] == "completed", f"the write ended as {event['status']}")
    second = chat_as(stack, "What is my locker code?", {**memory, "mode": "read"})
    reply = second["choices"][0]["message"]["content"]
    check(reply, "the second conversation got an empty reply")
    return (
        f"{len(event['memories'])} written, {len(second['memory']['retrieved'])} recalled, reply {reply.strip()[:60]!r}"
    )


def memory(stack: Stack) -> str:
    """What is added is found."""
    added = {"messages": [{"role": "user", "content": _KEPT}], "user_id": stack.user, "infer": False}
    stack.wait(f"/v1/memory/events/{stack.answered('POST', '/v1/memory/add', added)['event_id']}")
    query = {"query": "When does the sauna open?", "user_id": stack.user, "include_raw": True}
    found = [hit["item"]["memory"] for hit in stack.answered("POST", "/v1/memory/search", query)["results"]]
    check(any("sauna" in text for text in found), f"the search found only {found}")
    return f"{len(found)} found, first {found[0][:60]!r}"


def long_read(stack: Stack) -> str:
    """A document of several chunks is read while the client waits."""
    read = stack.answered("POST", "/v1/long-read", _read())
    return _read_well(read)


def background_read(stack: Stack) -> str:
    """The same, queued and read by a worker."""
    read = stack.answered("POST", "/v1/long-read", {**_read(), "background": True})
    return _read_well(stack.wait(f"/v1/long-read/{read['id']}"))


def metrics(stack: Stack) -> str:
    """What was done above is counted, where the port of the API serves metrics too."""
    answer = stack.ask("GET", "/metrics")
    if answer.status == _ABSENT:
        return "on a port of their own"
    counted = [line for line in answer.body.decode().splitlines() if line.startswith("gateway_request_seconds_count{")]
    check(any("/v1/chat/completions" in line for line in counted), "/metrics does not count the chats")
    return f"{sum(float(line.rsplit(' ', 1)[1]) for line in counted):.0f} requests counted"


def erase(stack: Stack) -> str:
    """The user of these checks is gone again."""
    stack.answered("DELETE", f"/v1/memory?user_id={stack.user}")
    left = stack.answered("GET", f"/v1/memory?user_id={stack.user}")["items"]
    check(not left, f"{len(left)} memories are left")
    return "the user of these checks is erased"


CHECKS: "tuple[Callable[[Stack], str], ...]" = (
    health, guard, models, chat, memory, long_read, background_read, metrics, erase
)  # fmt: skip


def outcomes(stack: Stack) -> "Iterator[tuple[str, bool, str, float]]":
    """Name, whether it held, what it says, and its seconds, of each check; all are tried."""
    for one in CHECKS:
        began = time.monotonic()
        try:
            held, detail = True, one(stack)
        except CheckFailed as failure:
            held, detail = False, str(failure)
        except (KeyError, IndexError, TypeError) as odd:
            held, detail = False, f"the answer is not shaped as documented: {odd!r}"
        yield one.__name__.replace("_", " "), held, detail, time.monotonic() - began


def main() -> int:
    """Run all checks; print and return how it went."""
    parser = argparse.ArgumentParser(prog="smoke.py", description="Try a running Memloop stack.")
    parser.add_argument("--url", default=os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800"))
    parser.add_argument("--api-key", default=os.environ.get("MEMLOOP_API_KEY", ""))
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds, of one request or wait")
    arguments = parser.parse_args()
    if not arguments.url.startswith(("http://", "https://")):
        parser.error(f"{arguments.url!r} is not an http URL")
    user = f"smoke-{secrets.token_hex(4)}"
    stack = Stack(arguments.url.rstrip("/"), arguments.api_key, user, arguments.timeout)
    failed = 0
    for name, held, detail, seconds in outcomes(stack):
        failed += not held
        print(f"{'ok    ' if held else 'FAILED'}  {name:<16} {seconds:6.1f} s  {detail}", flush=True)
    print(f"{failed} of {len(CHECKS)} checks failed" if failed else f"all {len(CHECKS)} checks hold")
    return 1 if failed else 0


def _model(stack: Stack) -> str:
    served = stack.answered("GET", "/v1/models")["data"]
    check(served, "no model is served")
    return str(served[0]["id"])


def chat_as(stack: Stack, text: str, memory: Mapping[str, Any]) -> Any:
    """The answer to one message. An endpoint that refuses the fields of a short answer is asked without them."""
    body = {"model": _model(stack), "messages": [{"role": "user", "content": text}], "memory": memory}
    short = stack.ask("POST", "/v1/chat/completions", body | _SHORT)
    if short.status == _REFUSED:
        return stack.answered("POST", "/v1/chat/completions", body)
    return stack.result(short, "POST /v1/chat/completions")


def _read() -> "dict[str, Any]":
    """A body that names no model, so that the stack's reader reads."""
    text = _FILLER * 60 + _FACT + " " + _FILLER * 60
    return {"question": _QUESTION, "document": {"text": text}}


def _read_well(read: Any) -> str:
    check(read["status"] == "completed", f"the read ended as {read['status']}: {read['error']}")
    check("731" in read["output_text"], f"the answer is {read['output_text']!r}, without 731")
    return f"{read['progress']['chunks_total']} chunks, answer {read['output_text'].strip()[:60]!r}"


if __name__ == "__main__":
    sys.exit(main())
