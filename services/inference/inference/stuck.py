"""Detects an engine that is stuck rather than idle or busy.

An engine is stuck when it had requests but produced no token (or no metrics) for a while, and a probe that generates
one token does not return within the same time again. The counters alone do not decide: a long prefill produces no
token either, and a dropped request can stay in an idle engine's gauge.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from inference.metrics import EngineLoad
from memloop.ports import ChatModel, Prompt, Sampling
from memloop.wire.chat import ChatMessage
from memloop.wire.errors import DependencyError

_PROBE: Final = Prompt((ChatMessage(role="user", content="."),), Sampling(max_tokens=1))


class EngineStuck(RuntimeError):
    """The engine has requests and generates nothing; the message gives the duration."""


class StuckWatch:
    """Watches one engine's load. ``after_s`` of 0 disables it."""

    def __init__(self, model: ChatModel, *, after_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._model = model
        self._after_s = after_s
        self._clock = clock
        self._moved_at = clock()
        self._generated: float | None = None

    async def look(self, load: EngineLoad | None) -> None:
        """Record the load, None when the engine exported none. Raises EngineStuck."""
        if load is not None:
            before, self._generated = self._generated, load.generated
            if load.requests == 0 or load.generated is None or load.generated != before:
                self._moved_at = self._clock()
        if not self._after_s or self._clock() - self._moved_at < self._after_s:
            return
        try:
            async with asyncio.timeout(self._after_s):
                await self._model.complete(_PROBE)
        except (TimeoutError, DependencyError) as error:
            reason = f" ({error})" if isinstance(error, DependencyError) else ""
            raise EngineStuck(
                f"the engine is stuck: no token for {self._clock() - self._moved_at:.0f} s, and one token asked for "
                f"did not come within {self._after_s:g} s{reason}"
            ) from error
        self._moved_at = self._clock()
