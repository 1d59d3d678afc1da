"""A user at a glance: the facts that are stored of one, by category."""

from typing import Final

from pydantic import AwareDatetime

from memloop.wire.base import Wire

PINNED: Final = "pinned"
"""The tag of memories that come first in a profile."""
UNSORTED: Final = "other"
"""The category of memories without a tag."""


class ProfileFact(Wire):
    """A memory in a profile."""

    id: str
    memory: str
    pinned: bool = False
    valid_from: AwareDatetime


class ProfileCategory(Wire):
    """The facts of one category: pinned ones first, then the newest. A memory's first tag names its category."""

    name: str
    facts: tuple[ProfileFact, ...]


class UserProfile(Wire):
    """``GET /v1/memory/profile``: categories with pinned facts first, then those with the newest.

    ``tokens`` are those of the facts' texts; ``left_out`` counts memories that did not fit.
    """

    user_id: str
    agent_id: str | None = None
    run_id: str | None = None
    categories: tuple[ProfileCategory, ...]
    tokens: int
    left_out: int = 0
