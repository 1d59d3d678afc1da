"""Builds the SDK's server over our tools, and the manager that answers its HTTP requests.

Requests are stateless (no sessions), so any replica can answer any of them.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, cast

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ToolEntry
from pydantic import BaseModel
from sse_starlette.sse import AppStatus
from starlette.requests import Request

from gateway.mcp.memory_tools import (
    MOST_CHARS,
    AddMemory,
    DeleteMemory,
    GetMemory,
    ListMemories,
    SearchMemory,
    Tool,
    UpdateMemory,
    arguments_of,
    fitted,
)
from gateway.mcp.reading_tool import LongRead
from gateway.mcp.surface import Call, Caller
from memloop.wire.base import spender
from memloop.wire.errors import MemloopError
from memloop.wire.keys import Scope


@dataclass(frozen=True, slots=True)
class Served:
    """A tool, and the scope that its caller needs."""

    tool: type[Tool]
    scope: Scope
    read_only: bool = False
    destructive: bool = False


TOOLS: Final[Mapping[str, Served]] = {
    "memory_add": Served(AddMemory, "memory:write"),
    "memory_search": Served(SearchMemory, "memory:read", read_only=True),
    "memory_list": Served(ListMemories, "memory:read", read_only=True),
    "memory_get": Served(GetMemory, "memory:read", read_only=True),
    "memory_update": Served(UpdateMemory, "memory:write"),
    "memory_delete": Served(DeleteMemory, "memory:write", destructive=True),
    "long_read": Served(LongRead, "long-read", read_only=True),
}
_INSTRUCTIONS: Final = "Long-term memory of users, and question answering over documents of any length."

_log = logging.getLogger(__name__)


def make_manager(*, max_body_bytes: int) -> StreamableHTTPSessionManager:
    """Create the handler of ``POST /mcp``. ``gateway.access`` has already checked Host and Origin.

    Calls in flight when the process is stopped have its grace, as every request has (``memloop_service.serving``). Left
    to itself, the SDK's library for event streams cuts them off at the signal, and every later stream of the process.
    """
    AppStatus.disable_automatic_graceful_drain()
    server = Server(
        "memloop",
        version=version("memloop-service"),
        instructions=_INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )
    return StreamableHTTPSessionManager(
        server,
        stateless=True,
        max_request_body_size=max_body_bytes,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )


async def _list_tools(
    context: ServerRequestContext[dict[str, object], Request], params: PaginatedRequestParams | None
) -> ListToolsResult:
    """List the tools that the key may use."""
    del params
    principal = _caller(context).principal
    tools: list[ToolEntry] = []
    for name, served in TOOLS.items():
        if principal.allows(served.scope):
            schema = served.tool.model_json_schema()
            hints = ToolAnnotations(read_only_hint=served.read_only, destructive_hint=served.destructive)
            description = schema.pop("description")
            tools.append(ToolEntry(name=name, description=description, input_schema=schema, annotations=hints))
    return ListToolsResult(tools=tools)


async def _call_tool(
    context: ServerRequestContext[dict[str, object], Request], params: CallToolRequestParams
) -> CallToolResult:
    """Call a tool. Its errors are returned as results, which a model can read."""
    served = TOOLS.get(params.name)
    if served is None:
        raise MCPError(INVALID_PARAMS, f"Unknown tool {params.name[:80]!r}.")
    caller = _caller(context)
    call = Call(
        caller.mcp,
        caller.principal,
        caller.allowance,
        caller.session,
        id=context.request_id,
        progress=context.session.report_progress,
    )
    spender.set(caller.principal.tenant)
    try:
        call.principal.require(served.scope)
        asked = arguments_of(served.tool, params.arguments or {})
        return _result(await asked.run(call), most_chars=asked.max_chars)
    except MemloopError as error:
        return _result(error.envelope(), is_error=True)
    except Exception:  # noqa: BLE001 - logged only: its text may contain private data
        _log.exception("the tool %s failed", params.name)
        return _result(MemloopError("an internal error").envelope(), is_error=True)


def _caller(context: ServerRequestContext[dict[str, object], Request]) -> Caller:
    request = cast(Request, context.request)
    return cast(Caller, request.state.mcp_caller)


def _result(model: BaseModel, *, most_chars: int = MOST_CHARS, is_error: bool = False) -> CallToolResult:
    """Return the result as JSON text alone: clients give structured content to their model beside it, a second time."""
    text = fitted(model.model_dump(mode="json", exclude_none=True), most_chars=most_chars)
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)
