"""Imports the lines of ``memloop memory export``."""

from pathlib import Path
from typing import Final

from pydantic import ValidationError

from memloop.wire.store_requests import MAX_LINES, MemoryLine
from memloop_cli.importing.counts import Counts
from memloop_clients import GatewayClient

_LAST_LINE: Final = b'{"exported":'


async def import_export(client: GatewayClient | None, file: Path, counts: Counts, *, user: str | None) -> None:
    """Send the lines in batches; without a client only check them. They become the user's if one is named."""
    batch: list[tuple[int, bytes]] = []
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip() and not line.startswith(_LAST_LINE):
                counts.taken += 1
                batch.append((number, line.rstrip(b"\n") if user is None else _given(line, user)))
            if len(batch) == MAX_LINES:
                await _send(client, batch, counts)
                batch = []
    if batch:
        await _send(client, batch, counts)


def _given(line: bytes, user: str) -> bytes:
    """Return the line as the user's; one that is no line of an export unchanged."""
    try:
        version = MemoryLine.model_validate_json(line)
    except ValidationError:
        return line.rstrip(b"\n")
    item = version.item.model_copy(update={"user_id": user})
    return version.model_copy(update={"item": item}).model_dump_json().encode()


async def _send(client: GatewayClient | None, batch: list[tuple[int, bytes]], counts: Counts) -> None:
    if client is None:
        for number, line in batch:
            try:
                counts.saw(MemoryLine.model_validate_json(line).item.valid_from)
            except ValidationError:
                counts.fail(number, "not a line of an export")
            else:
                counts.kept += 1
        return
    result = await client.import_lines(b"\n".join(line for _, line in batch))
    counts.kept += result.imported
    counts.ignored += result.unchanged
    for error in result.errors:
        counts.fail(batch[error.line - 1][0], error.message)
    counts.failed += result.failed - len(result.errors)
