"""Who calls a tool, with what."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from gateway.access import Allowance, Principal
from gateway.mcp.cancelling import Session
from gateway.mcp.surface import Mcp

Progress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]
"""Tells the client how far its call is: done, of how much, in words. Silent unless the client asked for it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The HTTP request behind a call, authenticated."""

    mcp: Mcp
    principal: Principal
    allowance: Allowance
    session: Session


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one tool."""

    mcp: Mcp
    principal: Principal
    allowance: Allowance
    session: Session
    id: object
    """The client's own number or name for it."""
    progress: Progress
