"""FastAPI dependencies of routes: the caller, its rate-limit allowance, and admission.

Each depends on the request alone and calls the others directly. FastAPI resolves nested dependencies again for every
route, which took a quarter of a chat request's time.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias, cast

from fastapi import Depends, Query, Request, params

from gateway.access.access import Access, access_of
from gateway.access.allowance import Allowance
from gateway.access.principal import Principal
from memloop.wire.base import spender
from memloop.wire.errors import MemloopError
from memloop.wire.keys import TENANT_PATTERN, Scope
from memloop_service import INCOMING, IncomingBody
from memloop_service.http import Held, Lane
from memloop_service.incoming import refuse_unknown, refuse_unknown_dry_run

CALLER: Final = "memloop.caller"
"""The key in a request's ASGI scope that holds the authenticated caller."""


Tenant: TypeAlias = Annotated[str | None, Query(pattern=f"^{TENANT_PATTERN}$")]
"""The tenant that an operator's request targets; defaults to the caller's own."""


async def _access_of(request: Request) -> Access:
    return access_of(request)


AccessDep: TypeAlias = Annotated[Access, Depends(_access_of)]


async def principal_of(request: Request) -> Principal:
    """Return the caller. Raises Unauthenticated, and Unavailable when the key cannot be checked."""
    known = cast("Principal | None", request.scope.get(CALLER))
    if known is None:
        known = request.scope[CALLER] = access_of(request).keys.authenticate(request.headers)
        spender.set(known.tenant)
    return known


PrincipalDep: TypeAlias = Annotated[Principal, Depends(principal_of)]


@dataclass(frozen=True, slots=True)
class Needed:
    """Checks that the caller's key has ``scope``, None accepts any key; then that the route knows all parameters.

    ``ignores_unknown``: the route is OpenAI's or Anthropic's, whose clients send it parameters of newer versions.
    """

    scope: Scope | None
    ignores_unknown: bool = False

    async def __call__(self, request: Request) -> None:
        """Raise Unauthenticated or Forbidden unless the caller has the scope, UnknownParameter for what is unknown."""
        principal = await principal_of(request)
        if self.scope is not None:
            principal.require(self.scope)
        if not self.ignores_unknown:
            await refuse_unknown(request)
        elif request.method == "DELETE":
            refuse_unknown_dry_run(request)


def needs(scope: Scope | None, *, ignores_unknown: bool = False) -> params.Depends:
    """Return a scope check for ``dependencies``. Every route that is not public needs exactly one."""
    return Depends(Needed(scope, ignores_unknown))


async def allowance_of(request: Request) -> AsyncIterator[Allowance]:
    """Yield the request's rate-limit allowance; settle it after the last byte of the response."""
    state = request.scope.setdefault("state", {})
    allowance = Allowance(state, access_of(request), await principal_of(request))
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
    """Hold a slot for an interactive request until the last byte of the response. Raises Overloaded."""
    with await _room(request, "interactive"):
        yield


async def batch_room_of(request: Request) -> AsyncIterator[None]:
    """Hold a slot for a batch request until the last byte of the response. Raises Overloaded."""
    with await _room(request, "batch"):
        yield


async def _room(request: Request, lane: Lane) -> "_Counted":
    principal = await principal_of(request)  # only authenticated callers take a slot
    admission, announced = access_of(request).admission, announced_bytes(request)
    held = admission.room(lane, tenant=principal.tenant, announced=announced)
    return _Counted(held, cast(IncomingBody, request.scope[INCOMING]))


class _Counted:
    """Holds a slot that counts the body's bytes as they arrive."""

    __slots__ = ("_body", "_held")

    def __init__(self, held: Held, body: IncomingBody) -> None:
        self._held = held
        self._body = body

    def __enter__(self) -> None:
        self._held.__enter__()
        self._body.count = self._held.take

    def __exit__(self, *_: object) -> None:
        self._body.count = None
        self._held.__exit__()


def announced_bytes(request: Request) -> int:
    """Return the body's length as the client announces it, 0 if it does not."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


Room = Depends(room_of)
BatchRoom = Depends(batch_room_of)
