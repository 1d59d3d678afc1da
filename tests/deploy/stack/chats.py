"""Clients that chat while an engine dies, and try again as the OpenAI SDK does."""

import http.client
import itertools
import random
import threading
import time
import urllib.error
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.deploy.stack.compose import ComposeStack
from tests.deploy.stack.writers import ask

_RETRIES: Final = 2
_FIRST_PAUSE_S: Final = 0.5
_TRY_AGAIN: Final = frozenset({408, 409, 429})


def chat(stack: ComposeStack, text: str, *, user: str | None = None, model: str | None = None) -> dict[str, Any]:
    """The answer to one message; with ``user``, one that is remembered. Raises as ``ask`` does."""
    body: dict[str, Any] = {
        "model": model or ask(stack, "GET", "/v1/models")["data"][0]["id"],
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 60,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    return ask(stack, "POST", "/v1/chat/completions", body if user is None else {**body, "memory": {"user_id": user}})


@dataclass
class Chatter:
    """Chats without a pause. ``failed`` holds the chats that were given up, ``retried`` counts further tries."""

    stack: ComposeStack
    model: str
    answered: int = 0
    retried: int = 0
    failed: list[str] = field(default_factory=list[str])

    def run(self, stop: threading.Event) -> None:
        """Until ``stop``; the last chat is brought to its end."""
        for number in itertools.count():
            if stop.is_set():
                return
            self._chat(f"Hello {number}.")

    def _chat(self, text: str) -> None:
        for attempt in itertools.count():
            try:
                chat(self.stack, text, model=self.model)
            except (OSError, http.client.HTTPException) as error:
                if attempt == _RETRIES or not _may_be_tried_again(error):
                    self.failed.append(_told(error))
                    return
                self.retried += 1
                time.sleep(_FIRST_PAUSE_S * 2**attempt * random.uniform(0.75, 1.0))
            else:
                self.answered += 1
                return


def _may_be_tried_again(error: Exception) -> bool:
    return not isinstance(error, urllib.error.HTTPError) or error.code >= 500 or error.code in _TRY_AGAIN


def _told(error: Exception) -> str:
    said = error.read().decode(errors="replace") if isinstance(error, urllib.error.HTTPError) else ""
    return f"{error!r} {said}"


def counted(metrics: str, name: str, **labels: str) -> Mapping[str, float]:
    """Values of a counter by its label ``replica``, of those lines that have ``labels``."""
    found: dict[str, float] = {}
    for line in metrics.splitlines():
        if line.startswith(f"{name}{{") and all(f'{key}="{value}"' in line for key, value in labels.items()):
            replica = line.partition('replica="')[2].partition('"')[0]
            found[replica] = found.get(replica, 0) + float(line.rpartition(" ")[2])
    return found
