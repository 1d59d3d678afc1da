"""Answers the mem0 client's other routes with the error for unsupported features."""

from collections.abc import Awaitable, Callable
from typing import Final, Never

from fastapi import APIRouter

from gateway.access import needs
from memloop.wire.errors import NotSupported

_ROUTES: Final = (
    ("/v1/exports", ("POST",), "Exports in a schema: get_all gives the memories page by page"),
    ("/v1/exports/get", ("POST",), "Exports in a schema: get_all gives the memories page by page"),
    ("/v1/summary", ("POST",), "Summaries of exports"),
    ("/v2/entities/{kind}/{name}/profile", ("GET",), "Profiles"),
    ("/v2/profiles/{path:path}", ("GET", "POST"), "Profiles"),
    ("/api/v1/orgs/{path:path}", ("GET", "POST", "PUT", "PATCH", "DELETE"), "Projects: a key's tenant is its project"),
    ("/api/v1/webhooks/{path:path}", ("GET", "POST", "PUT", "DELETE"), "Webhooks of projects"),
)

router = APIRouter(include_in_schema=False, dependencies=[needs(None, ignores_unknown=True)])


def _refusing(what: str) -> Callable[[], Awaitable[None]]:
    async def refuse() -> Never:
        raise NotSupported(f"Not supported. {what}.")

    return refuse


for path, methods, what in _ROUTES:
    router.add_api_route(path, _refusing(what), methods=[*methods], response_model=None)
