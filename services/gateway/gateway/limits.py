"""How many requests may wait for the engine at once. The limit on a body's size is the service's, for every route."""

from collections.abc import Generator
from contextlib import contextmanager

from memloop.wire.errors import RateLimited

_RETRY_AFTER_S = 1.0


class ActiveRequests:
    """Counts the requests that are under way in this process and refuses those over the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._active = 0

    @contextmanager
    def one(self) -> Generator[None]:
        """Room for one request. Raises RateLimited (429) when there is none."""
        if self._active >= self._limit:
            raise RateLimited("Too many requests are under way here. Try again soon.", retry_after_s=_RETRY_AFTER_S)
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1
