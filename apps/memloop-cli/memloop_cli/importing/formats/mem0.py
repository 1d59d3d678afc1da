"""mem0's memories: the result of ``get_all`` of its platform or its library, and its export files."""

from collections.abc import Iterator
from typing import Final

from memloop_cli.importing.entries import Fact, Unreadable, content_id, fields_of, moment_of, text_of, whose_in

MEMBERS = ("",)
INSIDE = ("results", "memories")
_SAID_BY: Final = ("actor_id", "role")
"""Fields of a memory whose message named its speaker."""


def entries(value: object) -> Iterator[Fact]:
    """Yield the memory. Raises Unreadable."""
    found = fields_of(value)
    text = text_of(found, "memory", "text", "data")
    if not text:
        raise Unreadable("a memory without a text")
    metadata = found.get("metadata")
    said_by = {name: found[name] for name in _SAID_BY if text_of(found, name)}
    categories = found.get("categories")
    yield Fact(
        id=text_of(found, "id") or content_id([text]),
        text=text,
        whose=whose_in(found),
        at=moment_of(found.get("created_at")),
        tags=tuple(one for one in categories if isinstance(one, str))[:64] if isinstance(categories, list) else (),
        metadata=said_by | (fields_of(metadata) if metadata is not None else {}),
    )
