"""Exports and imports memories as JSONL with at most one page in memory."""

import codecs
from collections.abc import AsyncGenerator, AsyncIterator

import orjson

from memloop.wire.errors import MemloopError, TooLarge
from memloop.wire.store_requests import MAX_LINES, ExportPage, Imported, NumberedLine, StoreExport, StoreImport
from memloop_clients import StoreClient

_MAX_LINE_BYTES = 1024 * 1024
_MAX_BATCH_BYTES = 4 * 1024 * 1024
_MAX_ERRORS = 100
_BYTES_TO_TELL = 3
"""Of a body: enough for every byte order mark that is read."""
_COUNT_LINE = b'{"exported":'


async def exported(store: StoreClient, request: StoreExport, first: ExportPage) -> AsyncGenerator[bytes]:
    """Yield the lines and a last line with their number; an error line instead means that some are missing."""
    page, count = first, 0
    while True:
        for line in page.lines:
            yield line.model_dump_json().encode() + b"\n"
        count += len(page.lines)
        if page.next_cursor is None:
            break
        try:
            page = await store.export(request.model_copy(update={"cursor": page.next_cursor}))
        except MemloopError as error:
            yield orjson.dumps({"error": {"message": error.message, "type": "api_error"}}) + b"\n"
            return
    yield b"%s%d}\n" % (_COUNT_LINE, count)


async def imported(store: StoreClient, tenant: str, body: AsyncIterator[bytes], *, began: int) -> Imported:
    """Import the body's lines in batches. Raises TooLarge for a line over 1 MiB, and the store's errors.

    Lines before the error are imported; sending the file again continues from there. Lines of users that were erased
    after ``began`` (see ``LaneQueue.newest_token``) are refused.
    """
    total = Imported()
    batch: list[NumberedLine] = []
    size = number = 0
    async for raw in _lines(_in_utf8(body)):
        number += 1
        if not raw.strip() or raw.startswith(_COUNT_LINE):
            continue
        batch.append(NumberedLine(number=number, text=raw.decode("utf-8", "replace")))
        size += len(raw)
        if len(batch) == MAX_LINES or size >= _MAX_BATCH_BYTES:
            total = _sum(total, await store.take(StoreImport(tenant=tenant, lines=tuple(batch), began=began)))
            batch, size = [], 0
    if batch:
        total = _sum(total, await store.take(StoreImport(tenant=tenant, lines=tuple(batch), began=began)))
    return total


async def _in_utf8(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the body in UTF-8 without a byte order mark; of UTF-16 with one, or where JSON's first bytes show it."""
    first, decoder = b"", None
    async for chunk in body:
        if decoder is None:
            first += chunk
            if len(first) < _BYTES_TO_TELL:
                continue
            encoding = "utf-8-sig"
            if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                encoding = "utf-16"
            elif 0 in first[:2]:
                encoding = "utf-16-be" if first[0] == 0 else "utf-16-le"
            decoder, chunk = codecs.getincrementaldecoder(encoding)("replace"), first
        yield decoder.decode(chunk).encode()
    yield first if decoder is None else decoder.decode(b"", final=True).encode()


async def _lines(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    rest, number = b"", 1
    async for chunk in body:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
        number += len(whole)
        if len(rest) > _MAX_LINE_BYTES:
            raise TooLarge(f"line {number} is longer than {_MAX_LINE_BYTES} bytes", code="line_too_long")
    if rest:
        yield rest


def _sum(one: Imported, other: Imported) -> Imported:
    return Imported(
        imported=one.imported + other.imported,
        unchanged=one.unchanged + other.unchanged,
        failed=one.failed + other.failed,
        errors=(*one.errors, *other.errors)[:_MAX_ERRORS],
    )
