"""Reads the time that a client waits from its headers, and stops work that outlasts it."""

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final

from memloop.wire.errors import InvalidRequest, Timeout

HEADER: Final = "x-request-timeout"
_SDK_HEADERS: Final = ("x-stainless-timeout", "x-stainless-read-timeout")
"""What OpenAI's clients send of their own accord: the whole time (Node), the longest silence (Python)."""
_UNLIMITED: Final = nullcontext()


class DeadlinePassed(Timeout):
    """The client's deadline passed before the answer began."""

    default_code = "deadline_exceeded"


def deadline_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the client waits: the shortest of its headers, or None without any.

    Raises InvalidRequest if our own header is not a number of seconds.
    """
    timeouts = [_seconds(given) for name in _SDK_HEADERS if (given := headers.get(name))]
    if (given := headers.get(HEADER)) is not None:
        timeouts.append(_seconds(given))
        if timeouts[-1] is None:
            raise InvalidRequest("X-Request-Timeout must be a number of seconds above 0.", param="X-Request-Timeout")
    return min((seconds for seconds in timeouts if seconds is not None), default=None)


def within(seconds: float | None) -> AbstractAsyncContextManager[None]:
    """Cancel the block after ``seconds``, if given, and raise DeadlinePassed."""
    return _UNLIMITED if seconds is None else _limited(seconds)


@asynccontextmanager
async def _limited(seconds: float) -> AsyncGenerator[None]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise DeadlinePassed(f"The engine's answer did not begin within the {seconds:g} s that you wait.") from error


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None
