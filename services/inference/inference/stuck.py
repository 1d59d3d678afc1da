"""Tells an engine that is stuck from one that is idle or busy.

It is stuck when it has had requests but made no token for a while (or has not even told), and then a generation of
one token does not come back within as long again. A long prefill makes no token either, and a request that was
dropped can stay in an idle engine's gauge: so the counters only raise the suspicion, and the generation decides.
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
    """The engine runs, has requests, and generates nothing; the message says for how long."""


class StuckWatch:
    """Looks at one engine's load again and again. ``after_s`` of 0 switches it off."""

    def __init__(self, model: ChatModel, *, after_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._model = model
        self._after_s = after_s
        self._clock = clock
        self._moved_at = clock()
        self._generated: float | None = None

    async def look(self, load: EngineLoad | None) -> None:
        """Take note of the load, None when the engine did not tell it. Raises EngineStuck."""
        if self._moves(load):
            self._moved_at = self._clock()
        elif self._after_s and self._clock() - self._moved_at >= self._after_s:
            await self._try()
            self._moved_at = self._clock()

    def _moves(self, load: EngineLoad | None) -> bool:
        if load is None:
            return False
        before, self._generated = self._generated, load.generated
        return load.requests == 0 or load.generated is None or load.generated != before

    async def _try(self) -> None:
        try:
            async with asyncio.timeout(self._after_s):
                await self._model.complete(_PROBE)
        except (TimeoutError, DependencyError) as error:
            raise EngineStuck(
                f"the engine is stuck: no token for {self._clock() - self._moved_at:.0f} s, and one token asked for "
                f"did not come within {self._after_s:g} s{_told(error)}"
            ) from error


def _told(error: Exception) -> str:
    return f" ({error})" if isinstance(error, DependencyError) else ""
