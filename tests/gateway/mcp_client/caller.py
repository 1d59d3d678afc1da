"""The SDK's own client, of both generations of the protocol, and what a test asks of it."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.fakes.job_engine import Body, Reply, add_memory
from tests.fakes.processes import PATIENCE_S
from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.long_reads import reader

Era: TypeAlias = Literal["auto", "legacy"]
ERAS: Final[tuple[Era, ...]] = ("auto", "legacy")
"""Self-contained requests (2026-07-28), and the older handshake."""


def think(body: Body) -> Reply:
    """A memory writer when it has tools, else a reader."""
    return add_memory("Ann drinks green tea.") if body.get("tools") else reader(body)


def told(result: CallToolResult) -> Any:
    """The result as an object, which comes once, as a text."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert result.structured_content is None  # pyright: ignore[reportUnknownMemberType] - the SDK types it loosely
    return json.loads(content.text)


@dataclass(frozen=True)
class Caller:
    """A connected client."""

    client: Client
    http: httpx2.AsyncClient

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """What the tool gives; it must not be an error."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return told(result)

    async def refused(self, tool: str, /, **arguments: Any) -> Any:
        """The error that the tool gives as its result."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.content
        return told(result)["error"]

    async def added(self, text: str, **fields: Any) -> str:
        """The id of a memory that is stored as it is."""
        await self.call("memory_add", text=text, user_id="ann", infer=False, **fields)
        found = await self.call("memory_search", query=text, user_id="ann")
        return next(hit["item"]["id"] for hit in found["results"] if hit["item"]["memory"] == text)


@asynccontextmanager
async def caller(url: str, key: str = ALICE_KEY, *, era: Era = "auto") -> AsyncGenerator[Caller]:
    """A client that is connected to the gateway at the URL."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=era) as client,
    ):
        yield Caller(client, http)
