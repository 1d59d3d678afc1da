"""Bundles the MCP server and the slices that its tools use into one value."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request
from starlette.types import ASGIApp

from gateway.long_read.reading import Reading
from gateway.memory import Memory
from memloop_service.http import Admission
from memloop_state.values import Values


@dataclass(frozen=True, slots=True)
class Mcp:
    """The MCP surface. ``answer`` is the SDK's server; ``reads`` has the reads of sessions' calls."""

    answer: ASGIApp
    memory: Memory
    reading: Reading
    admission: Admission
    reads: Values


async def mcp_of(request: Request) -> Mcp:
    """Return the slice from the application's state."""
    return cast(Mcp, request.app.state.mcp)


McpDep: TypeAlias = Annotated[Mcp, Depends(mcp_of)]
