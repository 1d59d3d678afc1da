"""The caller and the context of a tool call."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from gateway.access import Allowance, Principal
from gateway.mcp.cancelling import Session
from gateway.mcp.surface import Mcp

Progress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]
"""Reports a call's progress: amount done, total, message. Sends nothing unless the client requested progress."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated HTTP request of a tool call."""

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
    """The request id that the client chose."""
    progress: Progress
