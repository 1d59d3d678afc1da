"""What a route asks FastAPI for: the process's services, the caller, room to work."""

from collections.abc import AsyncIterator
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from gateway.allowance import Allowance
from gateway.auth import Principal
from gateway.services import Services
from memloop.wire.errors import MemloopError


async def services_of(request: Request) -> Services:
    """The services that the composition root put on the application."""
    return cast(Services, request.app.state.services)


ServicesDep: TypeAlias = Annotated[Services, Depends(services_of)]


async def principal_of(request: Request, services: ServicesDep) -> Principal:
    """The caller. Raises Unauthenticated."""
    return services.keys.authenticate(request.headers)


PrincipalDep: TypeAlias = Annotated[Principal, Depends(principal_of)]


async def allowance_of(request: Request, services: ServicesDep, principal: PrincipalDep) -> AsyncIterator[Allowance]:
    """The request's part in its key's limits; put right after the last byte of the answer."""
    allowance = Allowance(request, services, principal)
    failed = False
    try:
        yield allowance
    except MemloopError:
        failed = True
        raise
    finally:
        await allowance.settle(failed=failed)


AllowanceDep: TypeAlias = Annotated[Allowance, Depends(allowance_of)]


async def room_of(services: ServicesDep, principal: PrincipalDep) -> AsyncIterator[None]:
    """Room for one more request at the engine, held until the last byte of the answer. Raises RateLimited."""
    del principal  # known callers only take room
    with services.active.one():
        yield


Room = Depends(room_of)
