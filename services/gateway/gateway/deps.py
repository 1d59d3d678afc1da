"""What a route asks FastAPI for: the process's services and the caller."""

from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from gateway.auth import Principal
from gateway.services import Services


async def services_of(request: Request) -> Services:
    """The services that the composition root put on the application."""
    return cast(Services, request.app.state.services)


async def principal_of(request: Request) -> Principal:
    """The caller. Raises Unauthenticated."""
    services = await services_of(request)
    return services.keys.authenticate(request.headers)


ServicesDep: TypeAlias = Annotated[Services, Depends(services_of)]
PrincipalDep: TypeAlias = Annotated[Principal, Depends(principal_of)]
