"""All rows of the tenant matrix in one."""

from itertools import chain

from tests.gateway.tenant_rows import (
    admin,
    chat,
    conversations,
    engine,
    files,
    long_read,
    mcp,
    mem0,
    memory,
    messages,
    responses,
    vector_stores,
)
from tests.gateway.tenants import Attempt

OPEN = {
    "GET /livez": "says only that the process runs",
    "GET /readyz": "names dependencies",
    "GET /metrics": "no label holds a tenant or a user",
    "GET /openapi.json": "the same for all",
    "GET /docs": "the same for all",
    "GET /console": "the same for all",
    "GET /console/{path:path}": "the same for all",
}
"""Routes that need no key, and why they may."""

_MODULES = (admin, chat, conversations, engine, files, long_read, mcp, mem0, memory, messages, responses, vector_stores)

SAME_FOR_ALL: dict[str, str] = dict(
    chain.from_iterable(getattr(module, "SAME_FOR_ALL", {}).items() for module in _MODULES)
)
"""Routes that need a key and hold nothing of a tenant, and why."""

ATTEMPTS: dict[str, list[Attempt]] = dict(chain.from_iterable(module.ATTEMPTS.items() for module in _MODULES))
"""How tenant B tries to reach what tenant A owns."""
