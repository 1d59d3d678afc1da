"""A route on the hot path: FastAPI reads and describes it, and has no part in running it.

FastAPI's resolver, its three exit stacks and its wrappers around every message that is sent serve what such a route
does not use: parameters in the path, the query and the body, and answers that are models. What the route declares stays
the one truth: the same dependencies are documented and run. The numbers: docs/decisions/0012-direct-routes.md.
"""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send


class DirectRoute(APIRoute):
    """A route whose dependencies ask for the request alone, and whose endpoint asks for the request and for them.

    The endpoint returns a Response; dependencies that yield are held until its last byte. Raises TypeError when a
    route is declared that asks for anything else.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if _has_parameters(self.dependant) or self.dependant.request_param_name != "request":
            raise TypeError(f"{path}: a direct route's endpoint asks for the request and for dependencies")
        self._needs = [_need(needed) for needed in self.dependant.dependencies]
        self.app = self._run

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        values: dict[str, object] = {}
        async with AsyncExitStack() as held:
            for need in self._needs:
                value = await need.get(request, held)
                if need.name is not None:
                    values[need.name] = value
            response: Response = await self.endpoint(request=request, **values)
            await response(scope, receive, send)


@dataclass(frozen=True, slots=True)
class _Need:
    """One dependency, and the endpoint's name for it, if it wants the value."""

    name: str | None
    call: Callable[[Request], Awaitable[object]] | None
    hold: Callable[[Request], AbstractAsyncContextManager[object]] | None

    async def get(self, request: Request, held: AsyncExitStack) -> object:
        """Its value."""
        if self.hold is not None:
            return await held.enter_async_context(self.hold(request))
        return await self.call(request) if self.call is not None else None


def _need(needed: Dependant) -> _Need:
    call = cast(Callable[..., Any], needed.call)
    if needed.dependencies or _has_parameters(needed) or needed.request_param_name is None:
        raise TypeError(f"{call}: a dependency of a direct route asks for the request alone")
    if inspect.isasyncgenfunction(call):
        return _Need(needed.name, None, asynccontextmanager(call))
    return _Need(needed.name, call, None)


def _has_parameters(needed: Dependant) -> bool:
    given = (needed.path_params, needed.query_params, needed.header_params, needed.cookie_params, needed.body_params)
    return any(given)
