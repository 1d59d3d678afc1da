"""The routes of mem0's platform API, for mem0's own client. Each maps onto a native operation.

The specification is the client of ``mem0ai`` 2.2: its requests, the fields it reads, the errors it distinguishes.
"""

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute

from gateway.mem0 import entities, memories, unsupported
from gateway.mem0.answers import MEM0

router = APIRouter()
for part in (memories, entities):
    router.include_router(part.router, dependencies=[Depends(entities.of_older_clients)])
router.include_router(unsupported.router)

PATHS = {"/".join(route.path.split("/")[:3]) for route in router.routes if isinstance(route, APIRoute)}
"""The first two segments of each path."""

__all__ = ["MEM0", "PATHS", "router"]
