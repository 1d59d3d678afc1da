"""The MCP server at ``/mcp``: memory and long reading as tools, with the same keys and tenants as all other routes."""
