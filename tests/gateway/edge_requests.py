"""Requests with values at the edges, for every route that an app has: those outside of its document too."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI

from gateway.mem0 import requests as mem0
from tests.gateway.edge_values import Edges, Schema
from tests.gateway.tenants import routes_of

PAGES: Final = ("/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json")
"""Static pages."""
MEM0: Final = {
    "POST /v3/memories/add": mem0.Add,
    "POST /v3/memories/search": mem0.Search,
    "POST /v3/memories": mem0.GetAll,
    "PUT /v1/memories/{memory_id}": mem0.Update,
    "PUT /v1/batch": mem0.BatchUpdate,
    "DELETE /v1/batch": mem0.BatchDelete,
}
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer", "minimum": 1, "maximum": 500}
_MEM0_QUERY: Final = dict.fromkeys(("user_id", "agent_id", "run_id", "app_id", "filters"), _TEXT) | {
    "page": _NUMBER,
    "page_size": _NUMBER,
}
_HEADERS: Final = ("Idempotency-Key", "X-Request-Timeout", "X-Memory-User-Id", "If-Match", "X-Client-Request-Id")
_BODILESS: Final = {"GET", "DELETE"}
_FORM: Final = "multipart/form-data"
_BOUNDARY: Final = "edge"
_PART: Final = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; name=%s\r\n\r\n%s"


@dataclass(frozen=True)
class Operation:
    """A route: its parameters by place and name, the type and the schema of its body."""

    method: str
    path: str
    parameters: Mapping[str, Mapping[str, Schema]] = field(default_factory=dict[str, Mapping[str, Schema]])
    media_type: str = ""
    body: Schema = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class EdgeRequest:
    """One request; the path is encoded."""

    operation: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


def operations(app: FastAPI) -> list[Operation]:
    """Every operation but MCP's and the pages."""
    document = app.openapi()["paths"]
    names = [(method, path) for method, path in routes_of(app) if path not in (*PAGES, "/mcp")]
    return [_operation(method, path, document.get(path, {}).get(method.lower())) for method, path in names]


def requests(operation: Operation, edges: Edges) -> Iterator[EdgeRequest]:
    """Requests of one operation, without an end."""
    while True:
        edges.next_request()
        body, headers = _body(operation, edges)
        given = {name: edges.named(name, schema) for name, schema in operation.parameters.get("header", {}).items()}
        given |= {name: edges.text(_TEXT) for name in _HEADERS if edges.chance(0.05)}
        path = _path(operation, edges) + _query(operation, edges)
        yield EdgeRequest(operation.name, operation.method, path, headers | _sendable(given), body)


def tool_calls(tools: Sequence[Mapping[str, Any]], edges: Edges) -> Iterator[EdgeRequest]:
    """MCP: calls of every tool in turn, and odd messages around them."""
    while True:
        for tool in tools:
            edges.next_request()
            call = {"name": tool["name"], "arguments": edges.value(_whole(tool["inputSchema"], edges))}
            message: object = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            if edges.chance(0.2):
                method = edges.random.choice(("initialize", "tools/list", "ping", "tools/call", "resources/read", "x"))
                message = {"jsonrpc": "2.0", "id": edges.anything(), "method": method, "params": edges.anything()}
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            headers |= _sendable({"MCP-Protocol-Version": edges.text(_TEXT)}) if edges.chance(0.05) else {}
            yield EdgeRequest(f"MCP {tool['name']}", "POST", "/mcp", headers, _json(message))


def _operation(method: str, path: str, told: Mapping[str, Any] | None) -> Operation:
    if told is None:
        model = MEM0.get(f"{method} {path}")
        body: Schema = model.model_json_schema() if model else {"type": "object"}
        media_type = "application/json" if model or method not in _BODILESS else ""
        return Operation(method, path, {"query": _MEM0_QUERY}, media_type, body)
    parameters: dict[str, dict[str, Schema]] = {}
    for one in told.get("parameters", ()):
        parameters.setdefault(one["in"], {})[one["name"]] = one["schema"]
    content: Mapping[str, Any] = told.get("requestBody", {}).get("content", {})
    media_type = next(iter(content), "")
    return Operation(method, path, parameters, media_type, content.get(media_type, {}).get("schema", {}))


def _whole(schema: Schema, edges: Edges) -> Schema:
    """The schema, its own definitions among those that the edges know."""
    edges.define(schema.get("$defs", {}))
    return schema


def _body(operation: Operation, edges: Edges) -> tuple[bytes, dict[str, str]]:
    if not operation.media_type:
        return b"", {}
    if operation.media_type == _FORM:
        return _form(edges), {"Content-Type": f"{_FORM}; boundary={_BOUNDARY}"}
    value = edges.value(_whole(operation.body, edges))
    if operation.media_type != "application/json":
        lines = [_json(edges.anything()) for _ in range(edges.random.randrange(4))]
        return b"\n".join(lines), {"Content-Type": operation.media_type}
    cut = edges.random.randrange(20) if edges.chance(0.02) else None
    return _json(value)[:cut], {"Content-Type": operation.media_type}


def _form(edges: Edges) -> bytes:
    fields = {"purpose": "user_data" if edges.chance(0.8) else edges.text(_TEXT)}
    fields |= {"expires_after[seconds]": str(edges.anything())} if edges.chance(0.2) else {}
    fields |= {"expires_after[anchor]": "created_at"} if edges.chance(0.2) else {}
    parts = [
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}'
        for name, value in fields.items()
    ]
    name = edges.text(_TEXT).replace('"', "") or "a.txt"
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    whole = "\r\n".join([*parts, head + edges.text(_TEXT), f"--{_BOUNDARY}--\r\n"])
    return whole.encode("utf-8", "surrogatepass")


def _path(operation: Operation, edges: Edges) -> str:
    path = operation.path
    while "{" in path:
        name = path[path.index("{") + 1 : path.index("}")]
        value = str(edges.named(name.partition(":")[0], _TEXT)) or "x"
        path = path.replace(f"{{{name}}}", _quoted(value).replace("{", "%7B"))
    return path


def _query(operation: Operation, edges: Edges) -> str:
    schemas = operation.parameters.get("query", {})
    given = {name: edges.named(name, schemas[name]) for name in schemas if edges.chance(0.5)}
    return "?" + "&".join(f"{name}={_quoted(str(value))}" for name, value in given.items()) if given else ""


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def _sendable(headers: Mapping[str, object]) -> dict[str, str]:
    """Those that HTTP/1.1 can carry."""
    texts = {name: str(value).strip() for name, value in headers.items()}
    return {name: text for name, text in texts.items() if text.isascii() and text.isprintable()}


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
