"""What a request held is free once it is over: nothing of it waits for the collector of reference cycles.

Until that comes, megabytes of bodies would stay.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import orjson
import pytest
from yarl import URL

from tests.fakes.processes import PATIENCE_S
from tests.gateway.api_rig import ALICE_KEY, TWO_TENANTS, api
from tests.gateway.cycles import MARK, cycles, holders
from tests.gateway.long_reads import reader
from tests.gateway.running import CHAT, Gateway, question

OF_ALICE: Final = {"user_id": "alice"}
SAID: Final = [{"role": "user", "content": MARK}]
MCP_ADD: Final = {"name": "add_memory", "arguments": {"text": MARK, **OF_ALICE}}
REQUESTS: Final[dict[str, tuple[str, object]]] = {
    "chat": (CHAT, question(MARK)),
    "chat with memory": (CHAT, question(MARK, memory=OF_ALICE)),
    "stream": (CHAT, question(MARK, stream=True)),
    "stream with memory": (CHAT, question(MARK, stream=True, memory=OF_ALICE)),
    "no JSON": (CHAT, b"{" + MARK.encode()),
    "refused fields": (CHAT, question(MARK, temperature="warm")),
    "refused fields of ours": ("/v1/memory/search", {"query": 1, "user_id": MARK}),
    "too large": (CHAT, MARK.encode() * (1 << 20)),
    "unknown model": (CHAT, {**question(MARK), "model": "unknown"}),
    "unknown path": ("/v1/nothing", SAID),
    "add": ("/v1/memory/add", {"messages": SAID, **OF_ALICE, "infer": False}),
    "queued add": ("/v1/memory/add", {"messages": SAID, **OF_ALICE}),
    "search": ("/v1/memory/search", {"query": MARK, **OF_ALICE}),
    "response": ("/v1/responses", {"model": "m", "input": MARK}),
    "streamed response": ("/v1/responses", {"model": "m", "input": MARK, "stream": True}),
    "unknown response": ("/v1/responses", {"model": "m", "input": MARK, "previous_response_id": "resp_0"}),
    "message": ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": SAID}),
    "streamed message": ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": SAID, "stream": True}),
    "refused message": ("/v1/messages", {"model": "m", "messages": SAID}),
    "read": ("/v1/long-read", {"model": "m", "question": "Where?", "document": {"text": MARK}, "stream": False}),
    "streamed read": ("/v1/long-read", {"model": "m", "question": "Where?", "document": {"text": MARK}}),
    "add as mem0 has it": ("/v3/memories/add/", {"messages": SAID, **OF_ALICE}),
    "refused add as mem0 has it": ("/v3/memories/add/", {"messages": 1, "user_id": MARK}),
    "call over MCP": ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": MCP_ADD}),
    "refused call over MCP": ("/mcp", {"jsonrpc": MARK}),
    "policies": ("/v1/memory/policies", SAID),
    "file that is none": ("/v1/files", SAID),
    "refused read": ("/v1/long-read", {"model": "m", "question": "Where?", "document": {}, "instructions": MARK}),
}


@pytest.fixture
async def gateway(redis_url: str) -> AsyncGenerator[Gateway]:
    async with api(redis_url, reader, api_keys=TWO_TENANTS, body_timeout_s=2.0) as it:
        yield it.gateway


async def sent(gateway: Gateway, path: str, body: object) -> None:
    headers = {"Authorization": f"Bearer {ALICE_KEY}", "Accept": "application/json, text/event-stream"}
    await gateway.post(path, body, headers=headers)
    await asyncio.sleep(0.05)


def head(announced: int) -> bytes:
    lines = (f"POST {CHAT} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {ALICE_KEY}")
    return "\r\n".join((*lines, "Content-Type: application/json", f"Content-Length: {announced}", "", "")).encode()


async def left(gateway: Gateway, raw: bytes, *, after: bytes) -> None:
    """Send the bytes, and leave once these have come."""
    url = URL(gateway.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(raw)
    if after:
        await asyncio.wait_for(reader.readuntil(after), PATIENCE_S)
    else:
        await asyncio.sleep(0.05)
    writer.close()
    await writer.wait_closed()
    await asyncio.sleep(0.1)


STREAM: Final = orjson.dumps(question(MARK, stream=True))
LEAVING: Final[dict[str, tuple[bytes, bytes]]] = {
    "before the body": (head(1000), b""),
    "in the body": (head(1000) + MARK.encode(), b""),
    "in the stream": (head(len(STREAM)) + STREAM, b"data: "),
    "after a slow body was refused": (head(1000) + MARK.encode(), b"body_timeout"),
}


@pytest.mark.parametrize("when", LEAVING)
async def test_a_request_is_freed_when_its_client_leaves(gateway: Gateway, when: str) -> None:
    raw, after = LEAVING[when]
    await left(gateway, raw, after=after)
    with cycles() as found:
        await left(gateway, raw, after=after)
    assert holders(found) == []


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_request_is_freed_when_it_is_over(gateway: Gateway, name: str) -> None:
    path, body = REQUESTS[name]
    await sent(gateway, path, body)
    with cycles() as found:
        await sent(gateway, path, body)
    assert holders(found) == []
