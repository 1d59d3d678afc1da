"""The gateway's client against a server that answers as the gateway does, or worse."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from memloop.wire.chat import Json
from memloop.wire.errors import (
    DependencyError,
    Forbidden,
    MemloopError,
    NotFound,
    RateLimited,
    Timeout,
    TooLarge,
    Unavailable,
    Unprocessable,
)
from memloop.wire.long_read import Document, LongRead, LongReadRequest
from memloop.wire.memory import Source
from memloop.wire.memory_requests import MemoryAdd
from memloop_clients.gateway import ChatAnswer, ChatDelta, GatewayClient
from memloop_clients.gateway_memory import ended, root_url
from tests.fakes.gateway_server import FakeGateway
from tests.fakes.gateway_server import ended as ended_read
from tests.fakes.web_server import serving

READ = LongReadRequest(model="m", question="Who?", document=Document(text="It is."))
ADD = MemoryAdd(messages=(Source(role="user", content="My locker code is 482."),), user_id="u1")


@asynccontextmanager
async def client_of(*routes: web.RouteDef, api_key: str | None = "sk") -> AsyncGenerator[GatewayClient]:
    async with serving(routes) as url, GatewayClient(f"{url}/v1", api_key=api_key) as client:
        yield client


@asynccontextmanager
async def fake_gateway() -> AsyncGenerator[tuple[FakeGateway, GatewayClient]]:
    fake = FakeGateway()
    async with client_of(*fake.routes()) as client:
        yield fake, client


def streaming(*blocks: bytes) -> web.RouteDef:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for block in blocks:
            await response.write(block)
        return response

    return web.post("/v1/chat/completions", answer)


async def chatted(client: GatewayClient) -> list[ChatDelta | ChatAnswer]:
    async with aclosing(client.chat({"model": "m", "messages": []})) as pieces:
        return [piece async for piece in pieces]


async def test_a_chat_is_its_pieces_and_then_the_whole_with_its_memory() -> None:
    async with fake_gateway() as (fake, client):
        *pieces, whole = await chatted(client)
    assert [piece.text for piece in pieces if isinstance(piece, ChatDelta)] == [*fake.reply, ""]
    assert isinstance(whole, ChatAnswer)
    assert (whole.text, whole.memory and whole.memory.retrieved) == ("Your locker code is 482.", ("m1",))
    assert fake.keys == ["Bearer sk"]


@pytest.mark.parametrize(("counted", "expected"), [(b"7", 7), (b"null", 0)])
async def test_a_chat_tells_the_engines_count_of_tokens_if_it_counts(counted: bytes, expected: int) -> None:
    chunk = b'data: {"choices":[],"usage":{"prompt_tokens":%b,"completion_tokens":%b}}\n\n' % (counted, counted)
    async with client_of(streaming(chunk, b"data: [DONE]\n\n")) as client:
        *_, whole = await chatted(client)
    assert isinstance(whole, ChatAnswer)
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (expected, expected)


async def test_an_error_in_a_stream_is_raised_with_its_message() -> None:
    body = json.dumps({"error": {"message": "the engine died", "type": "upstream_error"}}).encode()
    async with client_of(streaming(b'data: {"choices": []}\n\n', b"event: error\ndata: " + body + b"\n\n")) as client:
        with pytest.raises(DependencyError, match=r"^the engine died$"):
            await chatted(client)


async def test_a_chunk_of_another_shape_is_a_dependency_error() -> None:
    async with client_of(streaming(b"data: [1]\n\n")) as client:
        with pytest.raises(DependencyError, match="another version"):
            await chatted(client)


async def test_a_read_streams_its_events_in_order() -> None:
    async with fake_gateway() as (fake, client):
        async with aclosing(client.stream_read(READ)) as events:
            numbers = [event.sequence_number async for event in events]
        (body,) = fake.bodies("/v1/long-read")
    assert numbers == list(range(6))
    assert body["stream"] is True


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *[(403, Forbidden), (404, NotFound), (413, TooLarge), (422, Unprocessable), (429, RateLimited)],
        *[(500, MemloopError), (503, Unavailable), (504, Timeout), (418, DependencyError)],
    ],
)
async def test_a_refusal_is_the_error_that_the_gateway_raised(status: int, kind: type[MemloopError]) -> None:
    async with fake_gateway() as (fake, client):
        fake.refusal = (status, "No.")
        with pytest.raises(kind) as refused:
            await client.models()
        with pytest.raises(kind):
            await chatted(client)
    assert type(refused.value) is kind
    assert (refused.value.message, refused.value.param, refused.value.code) == ("No.", "document.text", "no")


async def test_one_name_is_one_idempotency_key_and_no_name_none() -> None:
    keys: list[str | None] = []

    async def add(request: web.Request) -> web.Response:
        keys.append(request.headers.get("Idempotency-Key"))
        return web.json_response({"event_id": "evt_1", "status": "queued"}, status=202)

    async with client_of(web.post("/v1/memory/add", add)) as client:
        assert [await client.add(ADD, name=name) for name in ("a", "a", "b", None)] == ["evt_1"] * 4
    assert keys[0] == keys[1] != keys[2]
    assert keys[3] is None


async def test_an_upload_is_a_form_with_purpose_name_and_bytes(tmp_path: Path) -> None:
    seen: list[tuple[str, str | None, bytes]] = []

    async def files(request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        seen.append((str(form["purpose"]), file.filename, file.file.read()))
        made: Json = {"id": "f1", "bytes": 3, "created_at": 0, "filename": file.filename, "status": "uploaded"}
        return web.json_response(made)

    document = tmp_path / "größe – 1.txt"
    document.write_bytes(b"\r\n--\0")
    async with client_of(web.post("/v1/files", files)) as client:
        assert (await client.upload(document)).id == "f1"
    assert seen == [("user_data", document.name, b"\r\n--\0")]


async def test_waiting_ends_with_the_read_or_with_its_time() -> None:
    reads = iter([ended_read("queued"), ended_read("in_progress"), ended_read("incomplete")])

    async def state() -> LongRead:
        return next(reads)

    pauses_s = (0.001, 0.001)
    assert (await ended(state, what="the read", wait_s=60, pauses_s=pauses_s)).status == "incomplete"

    async def never() -> LongRead:
        return ended_read("queued")

    with pytest.raises(Timeout, match=r"the read did not end within 0\.01 s"):
        await ended(never, what="the read", wait_s=0.01, pauses_s=pauses_s)


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"])
def test_a_url_may_name_the_version(url: str) -> None:
    assert root_url(url) == "http://h:1"


@pytest.mark.parametrize("url", ["localhost:7800", "ftp://h", "http://", ""])
def test_what_is_no_http_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="not an http URL"):
        GatewayClient(url)
