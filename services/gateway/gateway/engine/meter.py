"""Measures one request: total time, time without the engine, time to the first byte, and the tokens of both ways.

Engines are asked for the usage of streams whose clients did not ask for it; without it no tokens of such a stream could
be counted (docs/decisions/0087-every-stream-is-counted.md). Those clients do not get it.
"""

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from opentelemetry.trace import INVALID_SPAN, Span

from gateway.access import Allowance
from gateway.engine.served import LoopModel, note_usage
from gateway.metrics import Metrics
from memloop.wire.chat import Json
from memloop.wire.errors import MemloopError
from memloop_service.http import json_text, object_in, parsed_object

_INPUT: Final = ("prompt_tokens", "input_tokens")
_OUTPUT: Final = ("completion_tokens", "output_tokens")
"""The field names of chat completions and of responses."""


OPTIONS: Final = "stream_options"
_ASKS: Final = b',"stream_options":{"include_usage":true}}'


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A body for the engine; ``plain`` is the same without the question for usage that the gateway has added."""

    body: bytes
    plain: bytes | None = None

    @property
    def hides_usage(self) -> bool:
        """Whether the client did not ask for the usage."""
        return self.plain is not None


def counted(body: bytes, fields: Json) -> Outgoing:
    """Return a body that asks for the usage if the answer streams; ``fields`` are the client's own."""
    options = object_in(fields.get(OPTIONS))
    if fields.get("stream") is not True or options.get("include_usage") is True:
        return Outgoing(body)
    if OPTIONS not in fields:
        return Outgoing(body.rstrip()[:-1] + _ASKS, body)
    return Outgoing(json_text({**parsed_object(body), OPTIONS: {**options, "include_usage": True}}), body)


class _Stopwatch:
    """Adds up the seconds spent in its ``with`` blocks."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.total_s += time.perf_counter() - self._began


class Meter:
    """One request to the engine. ``operation`` is ``chat``, ``completions``, ``embeddings`` or ``responses``."""

    def __init__(self, metrics: Metrics, route: str, operation: str, allowance: Allowance) -> None:
        self._allowance = allowance
        self._metrics = metrics
        self._route = route
        self.operation: Final = operation
        self._model = ""
        self.call: Span = INVALID_SPAN
        """The trace span of the engine's call."""
        self._started = time.perf_counter()
        self._ours = _Stopwatch()
        self._saw_byte = False
        self._lost = False

    def goes_to(self, model: LoopModel) -> None:
        """Set the model that serves the request, once the request has been read."""
        self._model = model.label

    def ours(self) -> AbstractContextManager[None]:
        """Count the block's time as the gateway's own. Blocks must not nest."""
        return self._ours

    def first_byte(self) -> None:
        """Record the engine's first streamed byte; later calls have no effect."""
        if not self._saw_byte:
            self._saw_byte = True
            self._metrics.time_to_first_token_seconds.observe(time.perf_counter() - self._started)

    @property
    def counts_tokens(self) -> bool:
        """Whether every stream event must be passed to ``streamed``."""
        return self._allowance.counts_tokens

    def streamed(self, event: bytes) -> None:
        """Count one event of the engine's stream."""
        self._allowance.streamed(event)

    def tokens(self, usage: object) -> None:
        """Record the engine's reported usage, if any."""
        self._allowance.usage(usage)
        given = object_in(usage)
        asked, replied = _count(given, _INPUT), _count(given, _OUTPUT)
        if asked is not None:
            self._metrics.count_tokens("input", self.operation, self._model, asked)
        if replied is not None:
            self._metrics.count_tokens("output", self.operation, self._model, replied)
        if self.call.is_recording():
            note_usage(self.call, input_tokens=asked, output_tokens=replied)

    def broken(self) -> None:
        """Count a stream that began and ended with an error of ours or of the engine's."""
        self._metrics.streams_broken.labels(self._route).inc()

    def lost(self, error: MemloopError) -> None:
        """Record that the engine failed in mid-stream."""
        self._lost = True
        self._metrics.count_error(error, model=self._model)
        self.broken()

    def finish(self) -> None:
        """Record the completed answer."""
        self._metrics.count_overhead(self._route, self._ours.total_s)
        if not self._lost:
            self._metrics.count_call(self._model, time.perf_counter() - self._started - self._ours.total_s)


def _count(usage: Json, names: tuple[str, str]) -> int | None:
    count = usage.get(names[0], usage.get(names[1]))
    return count if isinstance(count, int) else None
