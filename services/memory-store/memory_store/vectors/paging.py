"""Reads everything that a condition matches, page by page."""

from collections.abc import AsyncGenerator

from memory_store.vectors.filters import Condition
from memory_store.vectors.port import Collection, Page

_PAGE = 256


async def pages(collection: Collection, where: Condition, *, size: int = _PAGE) -> AsyncGenerator[Page]:
    """Yields every page in the order of ids."""
    start_id: str | None = None
    while True:
        page = await collection.scroll(where=where, limit=size, start_id=start_id)
        yield page
        if page.next_id is None:
            return
        start_id = page.next_id


async def every_id(collection: Collection, where: Condition) -> list[str]:
    """Returns the ids of all points that the condition matches."""
    return [found.id async for page in pages(collection, where) for found in page.found]
