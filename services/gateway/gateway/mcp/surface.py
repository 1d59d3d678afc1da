"""The slice in one value: the server, and what its tools work with."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request
from redis.asyncio import Redis
from starlette.types import ASGIApp

from gateway.http import Admission
from gateway.long_read.reading import Reading
from gateway.memory.memory import Memory


@dataclass(frozen=True, slots=True)
class Mcp:
    """The MCP surface. ``answer`` is the SDK's server; ``redis`` keeps which read a session's call runs."""

    answer: ASGIApp
    memory: Memory
    reading: Reading
    admission: Admission
    redis: Redis


async def mcp_of(request: Request) -> Mcp:
    """Returns the slice from the application's state."""
    return cast(Mcp, request.app.state.mcp)


McpDep: TypeAlias = Annotated[Mcp, Depends(mcp_of)]
