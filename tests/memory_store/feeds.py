"""A change feed for tests that build parts of a store."""

from memloop_state.link import State
from memloop_state.store.tenants import ChangeFeed


def feed_of(link: State, *, most: int = 10_000, keep_s: float = 3600.0, over_ms: int = 30_000) -> ChangeFeed:
    """A feed in that Redis."""
    return ChangeFeed(link, most=most, keep_s=keep_s, over_ms=over_ms)
