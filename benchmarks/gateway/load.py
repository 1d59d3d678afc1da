"""A closed loop of HTTP requests with little overhead: one parser per connection, bodies only read and counted."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import httptools

from memloop.scoring.comparison import percentile

_REQUEST_TIMEOUT_S = 60.0
_HTTP_OK = 200


class LoadError(RuntimeError):
    """A server closed its connection during an answer, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its status, its number of events, the seconds to the first and to the last byte of its body."""

    status: int
    events: int
    first_s: float
    total_s: float


@dataclass(frozen=True, slots=True)
class Load:
    """The measurements of a closed loop."""

    wall_s: float
    answers: Sequence[Answer]

    @property
    def per_second(self) -> float:
        """Return answers per second over all connections."""
        return len(self.answers) / self.wall_s

    def failures(self, *, events: int) -> int:
        """Count answers with a status other than 200 or with too few events, such as an unstreamed stream."""
        return sum(answer.status != _HTTP_OK or answer.events < events for answer in self.answers)

    def total_ms(self, percent: float) -> float:
        """Return a percentile of the total time in milliseconds."""
        return 1000 * percentile([answer.total_s for answer in self.answers], percent)

    def first_ms(self, percent: float) -> float:
        """Return a percentile of the time to the first byte of the body in milliseconds."""
        return 1000 * percentile([answer.first_s for answer in self.answers], percent)


def post(path: str, body: bytes, *, key: str) -> bytes:
    """Encode a POST of JSON with an API key as raw HTTP."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def closed_loop(port: int, requests: Sequence[bytes], *, concurrency: int) -> Load:
    """Send the requests over ``concurrency`` connections, one request at a time on each. Raises LoadError, OSError."""
    waiting, answers = iter(requests), list[Answer]()
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(requests))):
            group.create_task(_one_connection(port, waiting, answers))
    return Load(time.perf_counter() - began, answers)


async def _one_connection(port: int, waiting: Iterator[bytes], answers: list[Answer]) -> None:
    connection: _Connection | None = None
    for request in waiting:
        if connection is None or connection.closed:
            connection = await _connected(port)
        async with asyncio.timeout(_REQUEST_TIMEOUT_S):
            answers.append(await connection.exchange(request))
    if connection is not None:
        connection.close()


async def _connected(port: int) -> "_Connection":
    _, connection = await asyncio.get_running_loop().create_connection(_Connection, "127.0.0.1", port)
    return connection


class _Connection(asyncio.Protocol):
    """One keep-alive connection; the parser calls its ``on_…`` methods."""

    def __init__(self) -> None:
        self.closed = False
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._began = self._first = 0.0
        self._events = 0

    async def exchange(self, request: bytes) -> Answer:
        """Send one request and return its answer."""
        if self._transport is None:
            raise LoadError("the connection is not open")
        self._answer = asyncio.get_running_loop().create_future()
        self._began, self._first = time.perf_counter(), 0.0
        self._events = 0
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is compatible but not a subclass

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self.closed = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(LoadError(f"the server closed the connection: {exc}"))

    def on_body(self, body: bytes) -> None:
        """Count a piece of the body."""
        self._events += body.count(b"data:")
        if not self._first:
            self._first = time.perf_counter()

    def on_message_complete(self) -> None:
        """Complete the answer at its last byte; answers come one by one, so the parser needs no reset."""
        ended = time.perf_counter()
        status = int(self._parser.get_status_code())
        kept = self._parser.should_keep_alive()
        self._parser = httptools.HttpResponseParser(self)
        if not kept:
            self.closed = True
            self.close()
        if self._answer is not None and not self._answer.done():
            first_s, total_s = (self._first or ended) - self._began, ended - self._began
            self._answer.set_result(Answer(status, self._events, first_s, total_s))
