"""Bundles the records of files and their extraction queue into one value."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from gateway.files.blobs import Blobs
from gateway.files.records import FileRecords, ReadableFile
from gateway.files.storage import Storage
from gateway.queue import LaneQueue, QueueRules
from gateway.settings import GatewaySettings
from memloop.wire.errors import NotSupported
from memloop_service import of_app
from memloop_state.contents import Quota
from memloop_state.link import State

FILES_QUEUE = "files"


@dataclass(frozen=True, slots=True)
class Files:
    """Files and their texts. ``records`` is None without configured storage; ``wait_s`` bounds a wait for a text."""

    records: FileRecords | None
    queue: LaneQueue
    max_bytes: int
    wait_s: float

    def stored(self) -> FileRecords:
        """Return the records. Raises NotSupported when no storage is configured."""
        if self.records is None:
            raise NotSupported("Files are disabled: no storage is configured (MEMLOOP_STORAGE_URL).")
        return self.records

    async def readable(self, tenant: str, file_ids: Sequence[str], *, param: str) -> tuple[ReadableFile, ...]:
        """Return the files once their texts are extracted; all waits together last ``wait_s``.

        Raises NotSupported, and as ``FileRecords.read_file`` does.
        """
        records, deadline = self.stored(), time.monotonic() + self.wait_s
        found: list[ReadableFile] = []
        for file_id in file_ids:
            left_s = max(0.0, deadline - time.monotonic())
            found.append(await records.read_file(tenant, file_id, wait_s=left_s, param=param))
        return tuple(found)


def open_files(settings: GatewaySettings, state: State, rules: QueueRules) -> Files:
    """Build the slice from the settings."""
    queue = LaneQueue(state, FILES_QUEUE, rules=rules)
    records = None
    if settings.storage_url is not None:
        quota = Quota(settings.tenant_files, settings.tenant_storage_bytes)
        records = FileRecords(state, queue, Blobs(state, Storage.at(settings.storage_url), quota), quota)
    return Files(records, queue, settings.max_file_bytes, settings.file_wait_s)


FilesDep: TypeAlias = Annotated[Files, of_app("files")]
