"""Bundles the MCP server and the slices that its tools use into one value."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request
from redis.asyncio import Redis
from starlette.types import ASGIApp

from gateway.long_read.reading import Reading
from gateway.memory import Memory
from memloop_service.http import Admission


@dataclass(frozen=True, slots=True)
class Mcp:
    """The MCP surface. ``answer`` is the SDK's server; ``redis`` maps a session's calls to their reads."""

    answer: ASGIApp
    memory: Memory
    reading: Reading
    admission: Admission
    redis: Redis


async def mcp_of(request: Request) -> Mcp:
    """Return the slice from the application's state."""
    return cast(Mcp, request.app.state.mcp)


McpDep: TypeAlias = Annotated[Mcp, Depends(mcp_of)]
