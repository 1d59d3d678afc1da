"""Parses ``If-Match``, which names the version of a memory that a request edits."""

import re
from typing import Final

from memloop.wire.errors import InvalidRequest

IF_MATCH: Final = r'^(\*|(W/)?"?[0-9]{1,18}"?)$'
"""A version: ``3``, ``"3"`` or ``W/"3"``; ``*`` matches any."""


def version_in(if_match: str) -> int | None:
    """Return the version, or None for any. Raises InvalidRequest for a header of another form."""
    if not re.match(IF_MATCH, if_match):
        raise InvalidRequest("If-Match takes a version number", param="If-Match")
    return None if if_match == "*" else int(if_match.removeprefix("W/").strip('"'))
