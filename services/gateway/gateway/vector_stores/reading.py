"""Returns the text of a vector store's file, in pieces, so that a long one is never in memory as a whole."""

import asyncio
import codecs
from collections.abc import AsyncGenerator, Iterator
from itertools import islice
from typing import Final

import orjson

from gateway.vector_stores.indexing import pieces_of
from gateway.vector_stores.schemas import FileContentPage, TextContent
from gateway.vector_stores.slice import VectorStores

_PIECE_TOKENS: Final = 4096
_AT_ONCE: Final = 8


async def content_of(vector_stores: VectorStores, tenant: str, store_id: str, file_id: str) -> AsyncGenerator[bytes]:
    """Return the JSON of a ``FileContentPage`` in blocks: the extracted text as the tenant's policies let it be kept.

    Raises NotFound without the file, Conflict while its text is being extracted, Unprocessable when it has none.
    """
    await vector_stores.records.file(tenant, store_id, file_id)
    records = vector_stores.files.stored()
    file = await records.read_file(tenant, file_id, wait_s=0.0, param="file_id")
    blocks = records.blobs.storage.blocks(file.text.place)
    pieces = pieces_of(codecs.iterdecode(blocks, "utf-8"), _PIECE_TOKENS)
    return _page(vector_stores, tenant, pieces, await _cleaned(vector_stores, tenant, pieces))


async def _page(
    vector_stores: VectorStores, tenant: str, pieces: Iterator[str], some: list[TextContent]
) -> AsyncGenerator[bytes]:
    """Yield the page around its pieces, of which the first are read."""
    before, after = FileContentPage(data=[]).model_dump_json().encode().split(b"[]")
    yield before + b"["
    comma = b""
    while some:
        yield comma + b",".join(orjson.dumps(one.model_dump()) for one in some)
        comma, some = b",", await _cleaned(vector_stores, tenant, pieces)
    yield b"]" + after


async def _cleaned(vector_stores: VectorStores, tenant: str, pieces: Iterator[str]) -> list[TextContent]:
    texts = await asyncio.to_thread(lambda: list(islice(pieces, _AT_ONCE)))
    clean = await vector_stores.clean(tenant, texts) if texts else None
    return [TextContent(text=str(one)) for one in clean] if isinstance(clean, list) else []
