"""The dependencies of routes: the caller, its allowance, room to work.

Each takes the request alone and reaches the others by a plain call: FastAPI resolves a dependency of a dependency again
for every route that needs it, which cost a chat a quarter of its time.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias, cast

from fastapi import Depends, Query, Request, params

from gateway.access.access import Access, access_of
from gateway.access.allowance import Allowance
from gateway.access.principal import Principal
from memloop.wire.errors import MemloopError
from memloop.wire.keys import TENANT_PATTERN, Scope

CALLER: Final = "memloop.caller"
"""Where a request's scope holds its caller, once it is known."""


Tenant: TypeAlias = Annotated[str | None, Query(pattern=f"^{TENANT_PATTERN}$")]
"""The tenant that an operator's request is about; left out, the caller's own."""


async def _access_of(request: Request) -> Access:
    return access_of(request)


AccessDep: TypeAlias = Annotated[Access, Depends(_access_of)]


async def principal_of(request: Request) -> Principal:
    """The caller. Raises Unauthenticated, and Unavailable when a key cannot be checked."""
    known = cast("Principal | None", request.scope.get(CALLER))
    if known is None:
        known = request.scope[CALLER] = access_of(request).keys.authenticate(request.headers)
    return known


PrincipalDep: TypeAlias = Annotated[Principal, Depends(principal_of)]


@dataclass(frozen=True, slots=True)
class Needed:
    """The scope that a route asks of its caller; None: any key will do."""

    scope: Scope | None

    async def __call__(self, request: Request) -> None:
        """Raise Unauthenticated, Forbidden."""
        principal = await principal_of(request)
        if self.scope is not None:
            principal.require(self.scope)


def needs(scope: Scope | None) -> params.Depends:
    """For the ``dependencies`` of a route or a router: exactly one on every route that is not open to all."""
    return Depends(Needed(scope))


async def allowance_of(request: Request) -> AsyncIterator[Allowance]:
    """The request's part in its key's limits; put right after the last byte of the answer."""
    allowance = Allowance(request, access_of(request), await principal_of(request))
    failed = False
    try:
        yield allowance
    except MemloopError:
        failed = True
        raise
    finally:
        await allowance.settle(failed=failed)


AllowanceDep: TypeAlias = Annotated[Allowance, Depends(allowance_of)]


async def room_of(request: Request) -> AsyncIterator[None]:
    """Room for one more interactive request, held until the last byte of the answer. Raises Overloaded."""
    await principal_of(request)  # known callers only take room
    access = access_of(request)
    with access.admission.room("interactive", body_bytes=_body_bytes(request, access)):
        yield


async def batch_room_of(request: Request) -> AsyncIterator[None]:
    """Room for one more batch request, held as ``room_of`` does."""
    await principal_of(request)
    access = access_of(request)
    with access.admission.room("batch", body_bytes=_body_bytes(request, access)):
        yield


def _body_bytes(request: Request, access: Access) -> int:
    """What the body will take: as the client says, else as much as it may be."""
    announced = request.headers.get("content-length", "")
    return int(announced) if announced.isdecimal() else access.max_body_bytes


Room = Depends(room_of)
BatchRoom = Depends(batch_room_of)
