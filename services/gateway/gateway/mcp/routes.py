"""``POST /mcp``: the Model Context Protocol over streamable HTTP.

Requests are independent, so there is no stream to open (GET) and no session to end (DELETE): both return 405, as the
protocol allows.
"""

from fastapi import APIRouter, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.access import AllowanceDep, PrincipalDep, Room, needs
from gateway.mcp.surface import SESSION_HEADER, Caller, McpDep, Session
from memloop_service.http import engines_body

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
