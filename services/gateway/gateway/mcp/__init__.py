"""The MCP server at ``/mcp``: memory and long reading as tools, for the same keys and tenants as every other route.

``host`` is what the process keeps; it imports the rest, and with it the SDK (24 MB), at the first request.
"""
