"""FastAPI dependencies of routes: the caller, its rate-limit allowance, admission, and the user named.

Each depends on the request alone and calls the others directly. FastAPI resolves nested dependencies again for every
route, which took a quarter of a chat request's time.

Without the state the rate limits are not enforced: requests go on, and ``rate_limit_skipped_total`` counts them.
Admission, which protects the process itself, does not need the state.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, Any, Final, Self, TypeAlias, cast

from fastapi import Depends, Query, Request, params
from pydantic import BaseModel

from gateway.access.access import Access
from gateway.access.estimates import estimate_tokens
from gateway.access.keys import Principal, managed
from gateway.idempotency import KEY_HEADER, refuse_ignored_key
from memloop.chores import patient
from memloop.wire.base import Wire, spender
from memloop.wire.chat import NO_OPTIONS, MemoryOptions
from memloop.wire.errors import DependencyError, MemloopError, RateLimited
from memloop.wire.fields import Name, named
from memloop.wire.keys import TENANT_PATTERN, Scope
from memloop.wire.memory import Namespace
from memloop_service import INCOMING, RESPONSE_HEADERS, IncomingBody, of_app
from memloop_service.http import DeadlinePassed, Lane, Model, body_of, object_in, read_ours
from memloop_service.incoming import AGENT_HEADER, USER_HEADER, refuse_unknown, refuse_unknown_dry_run
from memloop_state.room import UNLIMITED, Standing

CALLER: Final = "memloop.caller"
"""The key in a request's ASGI scope that holds the authenticated caller."""


Tenant: TypeAlias = Annotated[str | None, Query(pattern=f"^{TENANT_PATTERN}$")]
"""The tenant that an operator's request targets; defaults to the caller's own."""


AccessDep: TypeAlias = Annotated[Access, of_app("access")]


def access_of(request: Request) -> Access:
    """Return the slice from the application's state."""
    return cast(Access, request.app.state.access)


async def principal_of(request: Request) -> Principal:
    """Return the caller. Raises Unauthenticated, and Unavailable when the key cannot be checked."""
    known = cast("Principal | None", request.scope.get(CALLER))
    if known is None:
        known = request.scope[CALLER] = access_of(request).keys.authenticate(request.headers)
        spender.set(known.tenant)
    return known


PrincipalDep: TypeAlias = Annotated[Principal, Depends(principal_of)]


async def tenant_of(principal: PrincipalDep, tenant: Tenant = None) -> str:
    """Return the tenant that the query names, by default the caller's own. Raises as ``managed`` does."""
    return managed(principal, tenant)


ManagedTenant: TypeAlias = Annotated[str, Depends(tenant_of)]


@dataclass(frozen=True, slots=True)
class Needed:
    """Checks that the caller's key has ``scope``, None accepts any key; then that the route knows all parameters.

    A route that takes no ``Idempotency-Key`` refuses one. ``ignores_unknown``: the route is OpenAI's or Anthropic's,
    whose clients send it parameters of newer versions, and may send every route a key.
    """

    scope: Scope | None
    ignores_unknown: bool = False

    async def __call__(self, request: Request) -> None:
        """Raise Unauthenticated or Forbidden unless the caller has the scope, InvalidRequest for what is unknown."""
        principal = await principal_of(request)
        if self.scope is not None:
            principal.require(self.scope)
        if not self.ignores_unknown:
            if KEY_HEADER in request.headers:
                refuse_ignored_key(request)
            await refuse_unknown(request)
        elif request.method == "DELETE":
            refuse_unknown_dry_run(request)


def needs(scope: Scope | None, *, ignores_unknown: bool = False) -> params.Depends:
    """Return a scope check for ``dependencies``. Every route that is not public needs exactly one."""
    return Depends(Needed(scope, ignores_unknown))


_TOTALS = (("total_tokens",), ("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))


def tokens_in(usage: object) -> int | None:
    """Return the engine's token count in its usage, if there is one."""
    fields = object_in(usage)
    for names in _TOTALS:
        counts = [fields.get(name) for name in names]
        if all(isinstance(count, int) for count in counts):
            return sum(cast(list[int], counts))
    return None


class Charge(Wire):
    """The tokens that a key's window holds for a request since that second, by Redis's clock, until they are corrected.

    Whoever finishes the request later, as a job, corrects them by ``Rates.settle``.
    """

    bucket: str
    second: int
    tokens: int


class Allowance:
    """Tracks one request against its key's limits. ``state`` is the request's, in its ASGI scope."""

    def __init__(self, state: dict[str, object], access: Access, principal: Principal) -> None:
        self._state = state
        self._access = access
        self.principal: Final = principal
        self._standing: Standing | None = None
        self._spent: int | None = None
        self._events = 0
        self._more = 0

    async def admit(self, *asked: object, more_tokens: int = 0) -> None:
        """Count the request and its estimated tokens plus ``more_tokens``. Raises RateLimited (429)."""
        rates = self._access.rates
        if rates.limits == UNLIMITED:
            return
        tokens = more_tokens + await estimate_tokens(asked, self._access.counting()) if rates.limits.tokens else 0
        try:
            async with patient(self._access.rates_timeout_s):
                standing = await rates.admit(self.principal.bucket, tokens=tokens)
        except (DependencyError, TimeoutError):
            self._access.metrics.rate_limit_skipped.inc()
            return
        found: dict[str, str] = {}
        for kind, limit, used, reset_s in (
            ("requests", rates.limits.requests, standing.used_requests, standing.reset_requests_s),
            ("tokens", rates.limits.tokens, standing.used_tokens, standing.reset_tokens_s),
        ):
            if limit > 0:
                found[f"x-ratelimit-limit-{kind}"] = str(limit)
                found[f"x-ratelimit-remaining-{kind}"] = str(max(0, limit - used))
                found[f"x-ratelimit-reset-{kind}"] = f"{reset_s}s"
        self._state[RESPONSE_HEADERS] = found
        if standing.wait_s > 0:
            kind = "requests" if standing.wait_requests_s >= standing.wait_tokens_s else "tokens"
            message = f"This key has exceeded its limit of {kind} per minute."
            raise RateLimited(message, code="rate_limit_exceeded", retry_after_s=standing.wait_s)
        self._standing = standing

    def usage(self, given: object) -> None:
        """Record the engine's token count if ``given`` contains one."""
        if (tokens := tokens_in(given)) is not None:
            self.spend(tokens)

    def spend(self, tokens: int) -> None:
        """Record the total number of tokens that the request used."""
        self._spent = tokens

    def spend_more(self, tokens: int) -> None:
        """Add tokens that are not part of the answer itself."""
        self._more += tokens

    @property
    def counts_tokens(self) -> bool:
        """Whether the key has a token limit, so every stream event must be counted."""
        return self._standing is not None and self._access.rates.limits.tokens > 0

    @property
    def charge(self) -> Charge | None:
        """What was counted at admission, for a job that finishes the request; None without a token limit."""
        if self._standing is None or not self.counts_tokens:
            return None
        return Charge(bucket=self.principal.bucket, second=self._standing.second, tokens=self._standing.charged)

    def streamed(self) -> None:
        """Count a stream event as one token, until the engine reports its count."""
        self._events += 1

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Replace the estimate with the tokens used. A request that failed before it used any costs none.

        One that ends by its client's deadline costs its estimate: the engine has worked for it.
        """
        standing, self._standing = self._standing, None
        if standing is None or not self._access.rates.limits.tokens:
            return
        spent = self._spent
        if spent is None:
            is_free = isinstance(error, MemloopError) and not isinstance(error, DeadlinePassed) and not self._events
            spent = 0 if is_free else standing.charged + self._events
        try:
            async with patient(self._access.rates_timeout_s):
                more = spent + self._more - standing.charged
                await self._access.rates.settle(self.principal.bucket, second=standing.second, more=more)
        except (DependencyError, TimeoutError):
            self._access.metrics.rate_limit_skipped.inc()


async def allowance_of(request: Request) -> AsyncIterator[Allowance]:
    """Yield the request's rate-limit allowance; settle it after the last byte of the response."""
    state = request.scope.setdefault("state", {})
    async with Allowance(state, access_of(request), await principal_of(request)) as allowance:
        yield allowance


AllowanceDep: TypeAlias = Annotated[Allowance, Depends(allowance_of)]


@dataclass(frozen=True, slots=True)
class Asking:
    """What most routes that take a body ask for. A dependency; the routes of a resource add what they share."""

    request: Request
    principal: PrincipalDep
    allowance: AllowanceDep

    @property
    def tenant(self) -> str:
        """The caller's tenant."""
        return self.principal.tenant

    async def body(self, model: type[Model]) -> Model:
        """Read the request's body and count the request. Raises as ``read_ours`` and ``Allowance.admit`` do."""
        asked = await read_ours(self.request, model)
        await self.allowance.admit()
        return asked


AskingDep: TypeAlias = Annotated[Asking, Depends()]


def _room(lane: Lane) -> params.Depends:
    """Return a dependency that holds a slot until the last byte of the response. It raises Overloaded.

    Its value is the request's allowance.
    """

    async def held(request: Request) -> AsyncIterator[Allowance]:
        access, state = access_of(request), request.scope.setdefault("state", {})
        allowance = Allowance(state, access, await principal_of(request))  # only authenticated callers take a slot
        body, tenant = cast(IncomingBody, request.scope[INCOMING]), allowance.principal.tenant
        with access.admission.room(lane, tenant=tenant, announced=announced_bytes(request)) as slot:
            body.count = slot.take
            try:
                async with allowance:
                    yield allowance
            finally:
                body.count = None

    return Depends(held)


def announced_bytes(request: Request) -> int:
    """Return the body's length as the client announces it, 0 if it does not."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


Room: Final = _room("interactive")
AdmittedDep: TypeAlias = Annotated[Allowance, Room]
BatchRoom: Final = _room("batch")


def takes(model: type[BaseModel], need: params.Depends) -> dict[str, Any]:
    """Return what every decorator of a route says that reads a JSON body of this model itself."""
    return {"dependencies": [need, Room], "openapi_extra": body_of(model)}


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
