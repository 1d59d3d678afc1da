"""Times and counts one request for the metrics: how long in all, how long without the engine, to the first byte."""

import time
from collections.abc import Generator
from contextlib import contextmanager

from gateway.allowance import Allowance
from gateway.answers import object_in
from gateway.metrics import Metrics


class Meter:
    """One request at the engine. ``operation`` is ``chat``, ``completions``, ``embeddings`` or ``responses``."""

    def __init__(self, metrics: Metrics, route: str, operation: str, allowance: Allowance) -> None:
        self._allowance = allowance
        self._metrics = metrics
        self._route = route
        self._operation = operation
        self._started = time.perf_counter()
        self._ours_s = 0.0
        self._saw_byte = False

    @contextmanager
    def ours(self) -> Generator[None]:
        """Count this time as the gateway's own."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._ours_s += time.perf_counter() - started

    def first_byte(self) -> None:
        """The engine's first streamed byte is here; later calls count nothing."""
        if not self._saw_byte:
            self._saw_byte = True
            self._metrics.time_to_first_token_seconds.observe(time.perf_counter() - self._started)

    @property
    def counts_tokens(self) -> bool:
        """Whether ``streamed`` wants to see every event."""
        return self._allowance.counts_tokens

    def streamed(self, event: bytes) -> None:
        """An event of the engine's stream passes."""
        self._allowance.streamed(event)

    def tokens(self, usage: object) -> None:
        """The usage that the engine gave, if it gave one."""
        self._allowance.usage(usage)
        given = object_in(usage)
        for kind, name in (("input", "prompt_tokens"), ("output", "completion_tokens")):
            count = given.get(name)
            if isinstance(count, int):
                self._metrics.token_usage.labels(kind, self._operation).observe(count)

    def finish(self) -> None:
        """The answer is complete."""
        self._metrics.overhead_seconds.labels(self._route).observe(self._ours_s)
