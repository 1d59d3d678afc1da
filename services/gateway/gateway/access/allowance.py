"""One request's part in its key's limits: let in, watched for what it spends, put right at its end.

Without Redis the limits are not kept: answers go on, and ``rate_limit_skipped_total`` counts them. What protects the
process itself, the bounded lanes, needs no Redis.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, cast

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.access.access import Access
from gateway.access.estimates import estimate_tokens
from gateway.access.principal import Principal
from gateway.access.rates import Standing
from gateway.http import data_of, object_in, parsed_object
from memloop.wire.errors import DependencyError, RateLimited

STATE_HEADERS: Final = "rate_limit_headers"
"""Where the request's state holds the headers for its response."""
_TOTALS = (("total_tokens",), ("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))


class Allowance:
    """What one request may do and has done."""

    def __init__(self, request: Request, access: Access, principal: Principal) -> None:
        self._request = request
        self._access = access
        self._bucket = principal.bucket
        self._standing: Standing | None = None
        self._spent: int | None = None
        self._events = 0
        self._more = 0

    async def admit(self, *asked: object, more_tokens: int = 0) -> None:
        """Count the request and an estimate of the tokens in what it asks, and more. Raises RateLimited (429)."""
        rates = self._access.rates
        if not rates.limits.any:
            return
        tokens = more_tokens + await estimate_tokens(asked, self._access.splitter) if rates.limits.tokens else 0
        try:
            async with asyncio.timeout(self._access.rates_timeout_s):
                standing = await rates.admit(self._bucket, tokens=tokens)
        except (DependencyError, TimeoutError):
            self._access.metrics.rate_limit_skipped.inc()
            return
        setattr(self._request.state, STATE_HEADERS, standing.headers(rates.limits))
        if standing.wait_s > 0:
            raise _over(standing)
        self._standing = standing

    def usage(self, given: object) -> None:
        """The engine's own count, if it is one."""
        fields = object_in(given)
        for names in _TOTALS:
            counts = [fields.get(name) for name in names]
            if all(isinstance(count, int) for count in counts):
                self.spend(sum(cast(list[int], counts)))
                return

    def spend(self, tokens: int) -> None:
        """All that the request has spent."""
        self._spent = tokens

    def spend_more(self, tokens: int) -> None:
        """Tokens beside those of the answer itself."""
        self._more += tokens

    @property
    def counts_tokens(self) -> bool:
        """Whether the key has a limit of tokens, and so each event of a stream counts."""
        return self._standing is not None and self._access.rates.limits.tokens > 0

    def streamed(self, event: bytes) -> None:
        """An event of the engine's stream: about one token, unless it tells the usage."""
        if not self.counts_tokens:
            return
        self._events += 1
        if b'"usage"' in event:
            chunk = parsed_object(data_of(event))
            self.usage(chunk.get("usage") or object_in(chunk.get("response")).get("usage"))

    async def settle(self, *, failed: bool) -> None:
        """Put the tokens right; what failed before it spent anything costs none."""
        standing, self._standing = self._standing, None
        if standing is None or not self._access.rates.limits.tokens:
            return
        try:
            async with asyncio.timeout(self._access.rates_timeout_s):
                await self._access.rates.settle(self._bucket, standing, spent=self._total(standing, failed))
        except (DependencyError, TimeoutError):
            self._access.metrics.rate_limit_skipped.inc()

    def _total(self, standing: Standing, failed: bool) -> int:
        if self._spent is not None:
            return self._spent + self._more
        if failed and not self._events:
            return self._more
        return standing.charged + self._events + self._more


class RateHeaders:
    """Adds the headers that the route has left in the request's state."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = cast(dict[str, object], scope.setdefault("state", {}))

        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start" and STATE_HEADERS in state:
                MutableHeaders(scope=message).update(cast(Mapping[str, str], state[STATE_HEADERS]))
            await send(message)

        await self._app(scope, receive, telling)


def _over(standing: Standing) -> RateLimited:
    kind = "requests" if standing.wait_requests_s >= standing.wait_tokens_s else "tokens"
    return RateLimited(
        f"This key is over its limit of {kind} per minute.", code="rate_limit_exceeded", retry_after_s=standing.wait_s
    )
