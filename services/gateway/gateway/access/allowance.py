"""Applies a key's rate limits to one request: admits it, counts its tokens, and corrects the count at the end.

Without the state the limits are not enforced: requests go on, and ``rate_limit_skipped_total`` counts them. Admission,
which protects the process itself, does not need the state.
"""

from typing import cast

from gateway.access.access import Access
from gateway.access.estimates import estimate_tokens
from gateway.access.principal import Principal
from memloop.patience import patient
from memloop.sse import data_of
from memloop.wire.errors import DependencyError, RateLimited
from memloop_service import RESPONSE_HEADERS
from memloop_service.http import object_in, parsed_object
from memloop_state.room import RateLimits, Standing

_TOTALS = (("total_tokens",), ("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))


class Allowance:
    """Tracks one request against its key's limits. ``state`` is the request's, in its ASGI scope."""

    def __init__(self, state: dict[str, object], access: Access, principal: Principal) -> None:
        self._state = state
        self._access = access
        self._bucket = principal.bucket
        self._standing: Standing | None = None
        self._spent: int | None = None
        self._events = 0
        self._more = 0

    async def admit(self, *asked: object, more_tokens: int = 0) -> None:
        """Count the request and its estimated tokens plus ``more_tokens``. Raises RateLimited (429)."""
        rates = self._access.rates
        if not rates.limits.any:
            return
        tokens = more_tokens + await estimate_tokens(asked, self._access.counting()) if rates.limits.tokens else 0
        try:
            async with patient(self._access.rates_timeout_s):
                standing = await rates.admit(self._bucket, tokens=tokens)
        except (DependencyError, TimeoutError):
            self._access.metrics.rate_limit_skipped.inc()
            return
        self._state[RESPONSE_HEADERS] = _headers(standing, rates.limits)
        if standing.wait_s > 0:
            kind = "requests" if standing.wait_requests_s >= standing.wait_tokens_s else "tokens"
            message = f"This key has exceeded its limit of {kind} per minute."
            raise RateLimited(message, code="rate_limit_exceeded", retry_after_s=standing.wait_s)
        self._standing = standing

    def usage(self, given: object) -> None:
        """Record the engine's token count if ``given`` contains one."""
        fields = object_in(given)
        for names in _TOTALS:
            counts = [fields.get(name) for name in names]
            if all(isinstance(count, int) for count in counts):
                self.spend(sum(cast(list[int], counts)))
                return

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

    def streamed(self, event: bytes) -> None:
        """Count a stream event as one token, or take the total from the event's ``usage`` field."""
        if not self.counts_tokens:
            return
        self._events += 1
        if b'"usage"' in event:
            chunk = parsed_object(data_of(event))
            self.usage(chunk.get("usage") or object_in(chunk.get("response")).get("usage"))

    async def settle(self, *, failed: bool) -> None:
        """Replace the estimate with the tokens used. A request that failed before it used any costs none."""
        standing, self._standing = self._standing, None
        if standing is None or not self._access.rates.limits.tokens:
            return
        try:
            async with patient(self._access.rates_timeout_s):
                await self._access.rates.settle(self._bucket, standing, spent=self._total(standing, failed))
        except (DependencyError, TimeoutError):
            self._access.metrics.rate_limit_skipped.inc()

    def _total(self, standing: Standing, failed: bool) -> int:
        if self._spent is not None:
            return self._spent + self._more
        if failed and not self._events:
            return self._more
        return standing.charged + self._events + self._more


def _headers(standing: Standing, limits: RateLimits) -> dict[str, str]:
    """Return OpenAI's ``x-ratelimit-*`` headers for the limits that are set."""
    rows = (
        ("requests", limits.requests, standing.used_requests, standing.reset_requests_s),
        ("tokens", limits.tokens, standing.used_tokens, standing.reset_tokens_s),
    )
    found: dict[str, str] = {}
    for kind, limit, used, reset_s in rows:
        if limit > 0:
            found[f"x-ratelimit-limit-{kind}"] = str(limit)
            found[f"x-ratelimit-remaining-{kind}"] = str(max(0, limit - used))
            found[f"x-ratelimit-reset-{kind}"] = f"{reset_s}s"
    return found
