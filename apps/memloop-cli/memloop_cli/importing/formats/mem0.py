"""mem0's memories: the result of ``get_all`` of its platform or its library, and its export files."""

from collections.abc import Iterator

from memloop_cli.importing.entries import Fact, Unreadable, content_id, fields_of, moment_of, text_of, whose_in

MEMBER = ""
INSIDE = ("results", "memories")


def entries(value: object) -> Iterator[Fact]:
    """Yield the memory. Raises Unreadable."""
    found = fields_of(value)
    text = text_of(found, "memory", "text", "data")
    if not text:
        raise Unreadable("a memory without a text")
    metadata = found.get("metadata")
    categories = found.get("categories")
    yield Fact(
        id=text_of(found, "id") or content_id([text]),
        text=text,
        whose=whose_in(found),
        at=moment_of(found.get("created_at")),
        tags=tuple(one for one in categories if isinstance(one, str))[:64] if isinstance(categories, list) else (),
        metadata=fields_of(metadata) if metadata is not None else {},
    )
