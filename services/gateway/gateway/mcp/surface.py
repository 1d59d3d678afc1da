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


class Session:
    """The tenant and session id that one client's requests share; the id is None before the handshake."""

    def __init__(self, mcp: Mcp, tenant: str, session_id: str | None) -> None:
        self._mcp = mcp
        self._tenant = tenant
        self._id = session_id
        self._begins = False

    @asynccontextmanager
    async def reading(self, call_id: object, read_id: str) -> AsyncGenerator[None]:
        """Make the call cancellable until the block exits."""
        if self._id is None:
            yield
            return
        key = self._key(call_id)
        await self._mcp.reads.put(key, read_id)
        try:
            yield
        finally:
            with suppress(DependencyError):
                await self._mcp.reads.delete(key, quick=True)

    def watching(self, receive: Receive) -> Receive:
        """Wrap ``receive`` to detect handshakes and cancellations."""

        async def watched() -> Message:
            message = await receive()
            body: bytes = message.get("body", b"")
            if len(body) <= _SMALL_BYTES and (b"initialize" in body or b"cancelled" in body):
                asked = parsed_object(body)
                if asked.get("method") == "initialize":
                    self._begins = True
                elif asked.get("method") == "notifications/cancelled" and self._id is not None:
                    call_id = object_in(asked.get("params")).get("requestId")
                    found = await self._mcp.reads.get(self._key(call_id))
                    if found is not None:
                        with suppress(NotFound):
                            await self._mcp.reading.records.cancel(self._tenant, found)
            return message

        return watched

    def with_session_id(self, send: Send) -> Send:
        """Wrap ``send`` to add a session id to the answer to a handshake."""

        async def send_with_id(message: Message) -> None:
            if self._begins and message["type"] == "http.response.start":
                MutableHeaders(scope=message)[SESSION_HEADER] = secrets.token_hex(16)
            await send(message)

        return send_with_id

    def _key(self, call_id: object) -> str:
        named = json.dumps([self._tenant, self._id, call_id])
        return hashlib.sha256(named.encode()).hexdigest()


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
class Call(Caller):
    """One call of one tool."""

    id: object
    """The request id that the client chose."""
    progress: Progress


router = APIRouter(include_in_schema=False)


class _Handed(Response):
    """A response produced by the MCP server."""

    def __init__(self, answer: ASGIApp, session: Session) -> None:
        super().__init__()
        self._answer = answer
        self._session = session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        await self._answer(scope, self._session.watching(receive), self._session.with_session_id(send))


@router.post("/mcp", dependencies=[needs(None), Room], openapi_extra=engines_body())
async def answer_mcp(request: Request, mcp: McpDep, principal: PrincipalDep, allowance: AllowanceDep) -> Response:
    """Pass an authenticated request to the MCP server; each tool checks its own scope."""
    session = Session(mcp, principal.tenant, request.headers.get(SESSION_HEADER))
    request.state.mcp_caller = Caller(mcp, principal, allowance, session)
    return _Handed(mcp.answer, session)
