"""``POST /mcp``: the Model Context Protocol over streamable HTTP, with the slices that its tools use.

Requests are independent, so there is no stream to open (GET) and no session to end (DELETE): both return 405, as the
protocol allows.
"""

import hashlib
import json
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.access import Allowance, AllowanceDep, Principal, PrincipalDep, Room, needs
from gateway.long_read.reading import Reading
from gateway.memory import Memory
from memloop.wire.errors import DependencyError, NotFound
from memloop_service import of_app
from memloop_service.http import Admission, engines_body, object_in, parsed_object
from memloop_state.steps import Values


@dataclass(frozen=True, slots=True)
class Mcp:
    """The MCP surface. ``answer`` is the SDK's server; ``reads`` has the reads of sessions' calls."""

    answer: ASGIApp
    memory: Memory
    reading: Reading
    admission: Admission
    reads: Values


McpDep: TypeAlias = Annotated[Mcp, of_app("mcp")]


SESSION_HEADER: Final = "mcp-session-id"
_SMALL_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated HTTP request, and the id of its client's session: None before the handshake."""

    mcp: Mcp
    principal: Principal
    allowance: Allowance
    session: str | None

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the server answer; a request may begin a session, or cancel a call of this one."""
        begins = False

        async def watched() -> Message:
            nonlocal begins
            message = await receive()
            body: bytes = message.get("body", b"")
            if len(body) <= _SMALL_BYTES and (b"initialize" in body or b"cancelled" in body):
                asked = parsed_object(body)
                begins = begins or asked.get("method") == "initialize"
                if asked.get("method") == "notifications/cancelled" and self.session is not None:
                    await self._cancel(object_in(asked.get("params")).get("requestId"))
            return message

        async def send_with_id(message: Message) -> None:
            if begins and message["type"] == "http.response.start":
                MutableHeaders(scope=message)[SESSION_HEADER] = secrets.token_hex(16)
            await send(message)

        await self.mcp.answer(scope, watched, send_with_id)

    async def _cancel(self, call_id: object) -> None:
        if (read_id := await self.mcp.reads.get(self._key(call_id))) is not None:
            with suppress(NotFound):
                await self.mcp.reading.records.cancel(self.principal.tenant, read_id)

    def _key(self, call_id: object) -> str:
        named = json.dumps([self.principal.tenant, self.session, call_id])
        return hashlib.sha256(named.encode()).hexdigest()


Progress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]
"""Reports a call's progress: amount done, total, message. Sends nothing unless the client requested progress."""


@dataclass(frozen=True, slots=True)
class Call(Caller):
    """One call of one tool."""

    id: object
    """The request id that the client chose."""
    progress: Progress

    @asynccontextmanager
    async def reading(self, read_id: str) -> AsyncGenerator[None]:
        """Make the call cancellable by its session until the block exits."""
        if self.session is None:
            yield
            return
        key = self._key(self.id)
        await self.mcp.reads.put(key, read_id)
        try:
            yield
        finally:
            with suppress(DependencyError):
                await self.mcp.reads.delete(key, quick=True)


class _Handed(Response):
    """A response that the MCP server produces."""

    def __init__(self, answer: ASGIApp) -> None:
        super().__init__()
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope, receive, send)


router = APIRouter(include_in_schema=False)


@router.post("/mcp", dependencies=[needs(None), Room], openapi_extra=engines_body())
async def answer_mcp(request: Request, mcp: McpDep, principal: PrincipalDep, allowance: AllowanceDep) -> Response:
    """Pass an authenticated request to the MCP server; each tool checks its own scope."""
    caller = Caller(mcp, principal, allowance, request.headers.get(SESSION_HEADER))
    request.state.mcp_caller = caller
    return _Handed(caller.answer)
