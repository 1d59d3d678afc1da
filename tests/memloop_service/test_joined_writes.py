"""An answer's head and body reach the connection as one write, in order, and nothing is held for long."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, StreamingResponse
from uvicorn.server import ServerState

from memloop_service.joined_writes import JoinedHttp, JoinedWrites

REQUEST = b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n"


class Recorded(asyncio.Transport):
    """A transport that keeps its writes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False
        self.until = b""
        self.complete = asyncio.Event()

    def write(self, data: Any) -> None:
        """Keep the data."""
        self.writes.append(bytes(data))
        if self.until and self.writes[-1].endswith(self.until):
            self.complete.set()

    def get_write_buffer_size(self) -> int:
        """Nothing waits."""
        return 0

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self.closed

    def close(self) -> None:
        """Close it."""
        self.closed = True

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Nothing is known of it."""
        return default

    def pause_reading(self) -> None:
        """All of a test's data is there at once."""

    def resume_reading(self) -> None:
        """It is never paused."""


@pytest.fixture
def transport() -> Recorded:
    return Recorded()


@pytest.fixture
async def writes(transport: Recorded) -> JoinedWrites:
    return JoinedWrites(transport, asyncio.get_running_loop())


async def answered(transport: Recorded, requests: bytes, *, until: bytes) -> list[bytes]:
    """The writes of a server of two routes, up to the one with the end of the last answer."""
    app = FastAPI()

    @app.get("/whole")
    async def whole() -> PlainTextResponse:
        return PlainTextResponse("Hello.")

    @app.get("/streamed")
    async def streamed() -> StreamingResponse:
        async def parts() -> AsyncGenerator[bytes]:
            yield b"One."
            await asyncio.sleep(0.01)
            yield b"Two."

        return StreamingResponse(parts())

    config = uvicorn.Config(app, http=JoinedHttp, log_config=None)
    config.load()
    protocol = JoinedHttp(config, ServerState(), {})
    transport.until = until
    protocol.connection_made(transport)
    protocol.data_received(requests)
    await asyncio.wait_for(transport.complete.wait(), 30)
    protocol.connection_lost(None)
    return transport.writes


async def test_head_and_body_are_one_write(transport: Recorded) -> None:
    (written,) = await answered(transport, REQUEST % b"whole", until=b"Hello.")
    assert written.startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_stream_is_not_held_until_its_end(transport: Recorded) -> None:
    written = await answered(transport, REQUEST % b"streamed", until=b"0\r\n\r\n")
    assert [b"One." in part for part in written] == [True, False]


async def test_answers_of_one_connection_keep_their_order(transport: Recorded) -> None:
    written = await answered(transport, REQUEST % b"streamed" + REQUEST % b"whole", until=b"Hello.")
    assert [word for word in b"".join(written).split(b"\r\n") if word in {b"One.", b"Two.", b"Hello."}] == [
        b"One.",
        b"Two.",
        b"Hello.",
    ]


async def test_much_data_is_sent_at_once(transport: Recorded, writes: JoinedWrites) -> None:
    writes.write(b"x" * 1000)
    assert (transport.writes, writes.get_write_buffer_size()) == ([], 1000)
    writes.write(b"y" * 64 * 1024)
    assert (len(transport.writes), writes.get_write_buffer_size()) == (1, 0)


async def test_what_comes_one_by_one_is_not_held_until_the_next_answer(
    transport: Recorded, writes: JoinedWrites
) -> None:
    writes.write(b"HTTP/1.1 200 OK\r\n\r\n")
    await asyncio.sleep(0)
    writes.write(b"One.")
    writes.write(b"Two.")
    assert transport.writes[1:] == [b"One.", b"Two."]
    writes.end_answer()
    writes.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    writes.write(b"The last.")
    await asyncio.sleep(0)
    assert transport.writes[3:] == [b"HTTP/1.1 204 No Content\r\n\r\nThe last."]


async def test_an_answer_that_ends_with_a_single_write_does_not_part_the_next_one(
    transport: Recorded, writes: JoinedWrites
) -> None:
    writes.write(b"The last.")
    writes.end_answer()
    await asyncio.sleep(0)
    writes.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    writes.write(b"Next.")
    await asyncio.sleep(0)
    assert transport.writes == [b"The last.", b"HTTP/1.1 204 No Content\r\n\r\nNext."]


async def test_what_comes_together_is_held_again(transport: Recorded, writes: JoinedWrites) -> None:
    for event in (b"one", b"two"):
        writes.write(b"HTTP/1.1 200 OK\r\n\r\n" if event == b"one" else event)
        writes.write(event)
        await asyncio.sleep(0)
    assert transport.writes[1:] == [b"twotwo"]


async def test_what_is_held_is_sent_before_the_connection_closes(transport: Recorded, writes: JoinedWrites) -> None:
    writes.write(b"last")
    writes.close()
    assert (transport.writes, transport.closed) == ([b"last"], True)


async def test_nothing_is_written_to_a_connection_that_was_lost(transport: Recorded, writes: JoinedWrites) -> None:
    writes.write(b"late")
    cast(Any, transport).close()
    await asyncio.sleep(0)
    assert transport.writes == []
