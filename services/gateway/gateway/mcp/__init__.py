"""The MCP server at ``/mcp``: memory and long reading as tools, with the same keys and tenants as all other routes.

``host`` runs in every process; it imports the rest, including the SDK (24 MB), on the first request.
"""
