"""Fencing tokens: a writer that lost its lane's lock must not write any more."""

from typing import Final

from memloop.wire.errors import Conflict

KEEP_MS: Final = 7 * 24 * 3600 * 1000
"""A lane's newest token is known for so long after its last use."""


def stale_token(token: int | None, newest: str) -> Conflict:
    """The refusal of a token that is older than the newest."""
    return Conflict(
        f"fencing token {token} is older than {newest}: another writer holds this lane now",
        code="stale_fencing_token",
    )


def refuse_stale(token: int | None, newest: str) -> None:
    """Raise ``Conflict`` if the script found a newer token."""
    if newest:
        raise stale_token(token, newest)
