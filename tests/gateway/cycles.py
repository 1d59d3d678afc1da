"""Finds what waits for the collector of reference cycles. That one comes seldom."""

import gc
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from aiohttp import ClientResponse
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

MARK: Final = "a text of megabytes"


@contextmanager
def cycles() -> Generator[list[Any]]:
    """What only the collector can free of all that is made meanwhile."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    found: list[Any] = []
    try:
        yield found
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def holders(found: Sequence[object]) -> list[str]:
    """What of it is a request, or an engine's answer, or refers to a text with the mark."""
    ours = [each for each in found if isinstance(each, RequestResponseCycle | ClientResponse) or _refers_to_mark(each)]
    return [f"{each!r:.300}" for each in ours]


def _refers_to_mark(each: object) -> bool:
    return any(map(_is_marked, gc.get_referents(each)))


def _is_marked(value: object) -> bool:
    return MARK in value if isinstance(value, str) else MARK.encode() in value if isinstance(value, bytes) else False
