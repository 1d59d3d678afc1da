"""The routes of mem0's platform API, for mem0's own client. Each maps onto a native operation.

The specification is the client of ``mem0ai`` 2.2: its requests, the fields it reads, the errors it distinguishes.
"""

from fastapi import APIRouter

from gateway.mem0 import entities, memories, unsupported

router = APIRouter()
for part in (memories, entities, unsupported):
    router.include_router(part.router)

__all__ = ["router"]
