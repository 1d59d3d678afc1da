"""The routes of mem0's platform API, for mem0's own client. Each maps onto a native operation.

The specification is the client of ``mem0ai`` 2.2: its requests, the fields it reads, the errors it distinguishes.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Never

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute

from gateway.access import needs
from gateway.mem0 import entities, memories
from gateway.mem0.answers import MEM0 as MEM0
from memloop.wire.errors import NotSupported

_NOT_SERVED: Final = (
    ("/v1/exports", ("POST",), "Exports in a schema: get_all gives the memories page by page"),
    ("/v1/exports/get", ("POST",), "Exports in a schema: get_all gives the memories page by page"),
    ("/v1/summary", ("POST",), "Summaries of exports"),
    ("/v2/entities/{kind}/{name}/profile", ("GET",), "Profiles"),
    ("/v2/profiles/{path:path}", ("GET", "POST"), "Profiles"),
    ("/api/v1/orgs/{path:path}", ("GET", "POST", "PUT", "PATCH", "DELETE"), "Projects: a key's tenant is its project"),
    ("/api/v1/webhooks/{path:path}", ("GET", "POST", "PUT", "DELETE"), "Webhooks of projects"),
)
"""The mem0 client's other routes: each is answered with the error for unsupported features."""


def _refusing(what: str) -> Callable[[], Awaitable[None]]:
    async def refuse() -> Never:
        raise NotSupported(f"Not supported. {what}.")

    return refuse


router = APIRouter(include_in_schema=False)
for part in (memories, entities):
    router.include_router(part.router, dependencies=[Depends(entities.of_older_clients)])
for path, methods, what in _NOT_SERVED:
    refused = [needs(None, ignores_unknown=True)]
    router.add_api_route(path, _refusing(what), methods=[*methods], response_model=None, dependencies=refused)

PATHS = {"/".join(route.path.split("/")[:3]) for route in router.routes if isinstance(route, APIRoute)}
"""The first two segments of each path."""
