"""The versions of a Qdrant server that the adapter works with."""

import re

_OLDEST = (1, 20)
"""The first with word frequencies of a part of the collection and with substring matches."""
_VERSION = re.compile(r"v?(\d+)\.(\d+)")


class ServerTooOld(RuntimeError):
    """The Qdrant server is older than the adapter needs; the message names both versions and the way out."""


def check_version(version: str) -> None:
    """Refuse a server older than 1.20, or one whose version cannot be read. Raises ``ServerTooOld``."""
    numbers = _VERSION.match(version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise ServerTooOld(
            f"the Qdrant server has version {version or 'unknown'}, but the memory store needs {oldest} or newer. "
            "Make a snapshot, then upgrade Qdrant, one minor version at a time; or set MEMLOOP_QDRANT_URL to a newer "
            "server."
        )
