"""FastAPI dependencies of routes: the caller, its rate-limit allowance, admission, and the user named;
and the middleware that names the user by a chat front end's own header.

Each depends on the request alone and calls the others directly. FastAPI resolves nested dependencies again for every
route, which took a quarter of a chat request's time.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias, cast

from fastapi import Depends, Query, Request, params
from starlette import types

from gateway.access.access import Access, Allowance, access_of
from gateway.access.principal import Principal
from memloop.wire.base import spender
from memloop.wire.chat import NO_OPTIONS, MemoryOptions
from memloop.wire.errors import MemloopError
from memloop.wire.fields import Name, named
from memloop.wire.keys import TENANT_PATTERN, Scope
from memloop.wire.memory import Namespace
from memloop_service import INCOMING, IncomingBody, of_app
from memloop_service.headers import AGENT_HEADER, USER_HEADER
from memloop_service.http import Lane
from memloop_service.incoming import refuse_unknown, refuse_unknown_dry_run

CALLER: Final = "memloop.caller"
"""The key in a request's ASGI scope that holds the authenticated caller."""


Tenant: TypeAlias = Annotated[str | None, Query(pattern=f"^{TENANT_PATTERN}$")]
"""The tenant that an operator's request targets; defaults to the caller's own."""


AccessDep: TypeAlias = Annotated[Access, of_app("access")]


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


def _room(lane: Lane) -> params.Depends:
    """Return a dependency that holds a slot until the last byte of the response. It raises Overloaded."""

    async def held(request: Request) -> AsyncIterator[None]:
        principal = await principal_of(request)  # only authenticated callers take a slot
        admission, body = access_of(request).admission, cast(IncomingBody, request.scope[INCOMING])
        with admission.room(lane, tenant=principal.tenant, announced=announced_bytes(request)) as slot:
            body.count = slot.take
            try:
                yield
            finally:
                body.count = None

    return Depends(held)


def announced_bytes(request: Request) -> int:
    """Return the body's length as the client announces it, 0 if it does not."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


Room: Final = _room("interactive")
BatchRoom: Final = _room("batch")


QueryId: TypeAlias = Annotated[Name, Query()]
OptionalId: TypeAlias = Annotated[Name | None, Query()]


async def _namespace_of(
    principal: PrincipalDep, user_id: QueryId, agent_id: OptionalId = None, run_id: OptionalId = None
) -> Namespace:
    return Namespace(tenant=principal.tenant, user_id=user_id, agent_id=agent_id, run_id=run_id)


NamespaceDep: TypeAlias = Annotated[Namespace, Depends(_namespace_of)]
"""The namespace that the query names."""


def namespace_named(
    principal: Principal,
    metadata: Mapping[str, str],
    headers: Mapping[str, str],
    *,
    options: MemoryOptions = NO_OPTIONS,
    others: Sequence[tuple[str, str | None]] = (),
) -> Namespace | None:
    """Return the namespace that metadata and headers name, the same way; ``others`` are further names of the user."""
    user_id = _first(
        ("memory.user_id", options.user_id),
        ("metadata.user_id", metadata.get("user_id")),
        ("X-Memory-User-Id", _in_header(headers, USER_HEADER)),
        *others,
    )
    if user_id is None:
        return None
    agent_id = _first(
        ("memory.agent_id", options.agent_id),
        ("metadata.agent_id", metadata.get("agent_id")),
        ("X-Memory-Agent-Id", _in_header(headers, AGENT_HEADER)),
    )
    run_id = _first(("memory.run_id", options.run_id), ("metadata.run_id", metadata.get("run_id")))
    return Namespace(tenant=principal.tenant, user_id=user_id, agent_id=agent_id, run_id=run_id)


def _in_header(headers: Mapping[str, str], name: str) -> str | None:
    """Return an id from a header, whose bytes are UTF-8 as in a body or, where they are not, Latin-1."""
    value = headers.get(name)
    if value is None or value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _first(*candidates: tuple[str, str | None]) -> str | None:
    for place, value in candidates:
        if value:
            return named(value, param=place)
    return None


_USER: Final = USER_HEADER.encode()


class UserHeaders:
    """Reads the first of ``names`` that a request has as ``X-Memory-User-Id``, where one of the ``keys`` sends it.

    With another key these headers have no meaning: their value is whatever a client wrote. Without configured keys
    every caller is this machine's.
    """

    def __init__(self, app: types.ASGIApp, *, names: Sequence[str], keys: frozenset[str]) -> None:
        self._app = app
        self._names = [name.lower().encode() for name in names]
        self._keys = keys

    async def __call__(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        """ASGI."""
        if scope["type"] == "http":
            given: list[tuple[bytes, bytes]] = scope["headers"]
            present = {name for name, _ in given}
            named = next((name for name in self._names if name in present), None)
            if named is not None and _USER not in present and await self._is_trusted(scope):
                users = [(_USER, value) for name, value in given if name == named]
                scope = {**scope, "headers": [*given, *users]}
        await self._app(scope, receive, send)

    async def _is_trusted(self, scope: types.Scope) -> bool:
        try:
            key = (await principal_of(Request(scope))).key
        except MemloopError:  # the route refuses it
            return False
        return not key or key in self._keys
