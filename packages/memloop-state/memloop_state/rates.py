"""Limits requests and tokens per minute and key with a sliding window that all replicas share.

The window is a hash of counts per second with at most 61 fields of each kind. A count expires 60 to 61 seconds after it
was made, never early. Tokens are estimated on admission and corrected once the usage is known. A request that alone
exceeds the token limit is admitted when the window is empty.
"""

from dataclasses import dataclass
from typing import Final

from memloop_state.link import State
from memloop_state.steps import Steps

_KEEP_S: Final = 61


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits per minute and key; 0 means unlimited."""

    requests: int = 0
    tokens: int = 0

    @property
    def any(self) -> bool:
        """Whether any limit is set."""
        return self.requests > 0 or self.tokens > 0


@dataclass(frozen=True, slots=True)
class Standing:
    """A key's usage after a request. A ``wait_*_s`` above 0 rejects it: the seconds until it would be admitted."""

    wait_requests_s: int
    wait_tokens_s: int
    used_requests: int
    used_tokens: int
    reset_requests_s: int
    reset_tokens_s: int
    second: int
    """When the request was admitted, by Redis's clock."""
    charged: int
    """The tokens counted until the request is settled."""

    @property
    def wait_s(self) -> int:
        """Seconds until the request would be admitted."""
        return max(self.wait_requests_s, self.wait_tokens_s)


class Rates:
    """The windows of all keys. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State, limits: RateLimits) -> None:
        self.limits = limits
        self._steps = Steps(redis, "access")

    async def admit(self, bucket: str, *, tokens: int) -> Standing:
        """Count one request and its tokens; a request over a limit is rejected and not counted."""
        args = [self.limits.requests, self.limits.tokens, tokens, _KEEP_S]
        return Standing(*map(int, await self._steps.rows("admit", [_window(bucket)], args)))

    async def settle(self, bucket: str, standing: Standing, *, spent: int) -> None:
        """Correct the token count that was made on admission."""
        more = spent - standing.charged
        if more:
            await self._steps("settle", [_window(bucket)], [standing.second, more, _KEEP_S])


def _window(bucket: str) -> str:
    return f"memloop:rate:{bucket}"
