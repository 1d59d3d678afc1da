"""Uploads documents and waits for their texts. A note of what is uploaded lets a command that is repeated go on."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from rich.console import Console
from rich.text import Text

from memloop.wire.errors import InvalidRequest, NotFound
from memloop.wire.files import FileObject
from memloop_cli.agents.edits import read_text, write_whole
from memloop_cli.errors import CliError
from memloop_cli.reading.sources import PipedSource, Source, UrlSource
from memloop_clients import GatewayClient

_KEEP_S: Final = 24 * 3600
"""Uploads are deleted after this long; a read holds its texts until it ends."""
_AT_ONCE: Final = 4
_FIRST_POLL_S: Final = 0.05
_LAST_POLL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class UploadNotes:
    """Ids of uploads by gateway, name and content."""

    file: Path

    def id_of(self, key: str) -> str | None:
        """Return the id of an upload that was made before."""
        found = self._all().get(key)
        return found if isinstance(found, str) else None

    def note(self, key: str, file_id: str) -> None:
        """Note an upload."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.file, json.dumps(self._all() | {key: file_id}))

    def _all(self) -> dict[str, object]:
        try:
            found: object = json.loads(read_text(self.file) or "{}")
        except ValueError:
            return {}
        return cast("dict[str, object]", found) if isinstance(found, dict) else {}


async def uploaded(
    client: GatewayClient, sources: Sequence[Source], notes: UploadNotes, console: Console
) -> tuple[FileObject, ...]:
    """Upload what is not uploaded yet; return the files with a text. Raises CliError when there is none.

    A file that is refused or has no text is reported and left out.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(source: Source) -> FileObject | str:
        async with slots:
            try:
                return await _processed(client, await _upload(client, source, notes))
            except (InvalidRequest, OSError) as error:
                return f"{_name(source)}: {error}"

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(source)) for source in sources]
    except ExceptionGroup as errors:  # of the gateway, and of no single file: the first one tells it all
        raise errors.exceptions[0] from None
    done = [task.result() for task in tasks]
    files = [file for file in done if isinstance(file, FileObject)]
    left_out = [reason for reason in done if isinstance(reason, str)]
    left_out += [f"{file.filename}: {file.status_details}" for file in files if file.status == "error"]
    for line in left_out:
        console.print(Text(f"left out  {line}", style="yellow"))
    for file in files:
        if file.status == "processed" and file.status_details:
            console.print(Text(f"{file.filename}: {file.status_details}", style="dim"))
    readable = tuple(file for file in files if file.status == "processed")
    if not readable:
        raise CliError("none of the documents has a text", code=2)
    return readable


def _name(source: Source) -> str:
    return source.url if isinstance(source, UrlSource) else source.name


async def _upload(client: GatewayClient, source: Source, notes: UploadNotes) -> FileObject:
    if isinstance(source, UrlSource):
        return await client.fetch_url(source.url, expires_s=_KEEP_S)
    content = source.content if isinstance(source, PipedSource) else await asyncio.to_thread(source.path.read_bytes)
    key = hashlib.sha256(b"\0".join((client.url.encode(), source.name.encode(), content))).hexdigest()
    known = notes.id_of(key)
    if known is not None:
        try:
            return await client.file(known)
        except NotFound:  # expired or deleted
            pass
    file = await client.upload_content(source.name, content, expires_s=_KEEP_S)
    notes.note(key, file.id)
    return file


async def _processed(client: GatewayClient, file: FileObject) -> FileObject:
    pause_s = _FIRST_POLL_S
    while file.status == "uploaded":
        await asyncio.sleep(pause_s)
        pause_s = min(1.5 * pause_s, _LAST_POLL_S)
        file = await client.file(file.id)
    return file
