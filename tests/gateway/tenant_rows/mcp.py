"""The MCP server in the tenant matrix."""

from tests.gateway.tenants import Attempt

SAME_FOR_ALL = {
    "POST /mcp": "answers in its own protocol: tests/gateway/mcp_client tries every tool as another tenant's client"
}

ATTEMPTS: dict[str, list[Attempt]] = {}
