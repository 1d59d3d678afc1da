"""The routes of mem0's platform, for its own client. Each one maps onto what the native routes do.

The specification is the client of ``mem0ai`` 2.2: what it sends, what it reads, how it tells errors apart.
"""

from fastapi import APIRouter

from gateway.mem0 import entities, memories, unsupported

router = APIRouter()
for part in (memories, entities, unsupported):
    router.include_router(part.router)

__all__ = ["router"]
