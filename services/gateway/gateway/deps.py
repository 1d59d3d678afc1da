"""What a route asks FastAPI for: the process's services, the caller, room to work."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request, params

from gateway.allowance import Allowance
from gateway.principal import Principal
from gateway.services import Services
from memloop.wire.errors import MemloopError
from memloop.wire.keys import Scope


async def services_of(request: Request) -> Services:
    """The services that the composition root put on the application."""
    return cast(Services, request.app.state.services)


ServicesDep: TypeAlias = Annotated[Services, Depends(services_of)]


async def principal_of(request: Request, services: ServicesDep) -> Principal:
    """The caller. Raises Unauthenticated."""
    return services.keys.authenticate(request.headers)


PrincipalDep: TypeAlias = Annotated[Principal, Depends(principal_of)]


@dataclass(frozen=True, slots=True)
class Needed:
    """The scope that a route asks of its caller; None: any key will do."""

    scope: Scope | None

    async def __call__(self, principal: PrincipalDep) -> None:
        """Raise Unauthenticated, Forbidden."""
        if self.scope is not None:
            principal.require(self.scope)


def needs(scope: Scope | None) -> params.Depends:
    """For the ``dependencies`` of a route or a router: exactly one on every route that is not open to all."""
    return Depends(Needed(scope))


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


async def room_of(request: Request, services: ServicesDep, principal: PrincipalDep) -> AsyncIterator[None]:
    """Room for one more interactive request, held until the last byte of the answer. Raises Overloaded."""
    del principal  # known callers only take room
    with services.lanes.room("interactive", body_bytes=_body_bytes(request, services)):
        yield


async def batch_room_of(request: Request, services: ServicesDep, principal: PrincipalDep) -> AsyncIterator[None]:
    """Room for one more batch request, held as ``room_of`` does."""
    del principal
    with services.lanes.room("batch", body_bytes=_body_bytes(request, services)):
        yield


def _body_bytes(request: Request, services: Services) -> int:
    """What the body will take: as the client says, else as much as it may be."""
    announced = request.headers.get("content-length", "")
    return int(announced) if announced.isdecimal() else services.settings.max_body_bytes


Room = Depends(room_of)
BatchRoom = Depends(batch_room_of)
