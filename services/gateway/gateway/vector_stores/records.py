"""Keeps vector stores and their files as a table. The texts lie in the memory store."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, cast

import orjson

from gateway.vector_stores.schemas import FileCounts, VectorStore, VectorStoreCreate, VectorStoreFile, VectorStoreUpdate
from memloop.wire.chat import Json
from memloop.wire.errors import Erased, NotFound, TooLarge
from memloop_state.link import State
from memloop_state.owners import Owner
from memloop_state.room import Room
from memloop_state.steps import id_at
from memloop_state.table import Row, Table

KIND: Final = "vector_stores"
"""What vector stores are among the records of their owners."""
NO_JOB: Final = "-"
"""The job of a file whose indexing was cancelled."""
_DAY_S: Final = 24 * 3600


@dataclass(frozen=True, slots=True)
class Limits:
    """The most vector stores of a tenant, files of one, and bytes of their texts."""

    stores: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Attached:
    """A file of a vector store, and the job that indexes it. ``filename`` is the file's own."""

    file: VectorStoreFile
    job: str
    filename: str
    batch: str = ""
    place: int = 0
    """The file's number in its vector store, once it is there."""

    def having(self, **fields: object) -> "Attached":
        """Return a copy whose file has these fields."""
        return replace(self, file=self.file.model_copy(update=fields))

    def row(self) -> Row:
        """Return the file as a row of its vector store, which belongs to the job and is counted by status."""
        kept = {"file": self.file.model_dump(mode="json"), "filename": self.filename, "batch": self.batch}
        text = orjson.dumps(kept).decode()
        return Row(self.file.id, text, self.file.usage_bytes, group=self.file.status, version=self.job)

    @classmethod
    def of(cls, row: Row) -> "Attached":
        """Return the file of a row."""
        kept = orjson.loads(row.text)
        file = VectorStoreFile.model_validate(kept["file"])
        return cls(file, row.version, kept["filename"], kept["batch"], row.number)


class VectorStoreRecords:
    """Every tenant's vector stores. Methods raise Unavailable."""

    def __init__(self, state: State, room: Room, limits: Limits) -> None:
        self.table = Table(
            state, "vector-store", kind=KIND, most=limits.stores, most_rows=limits.files, record_bytes=limits.bytes
        )
        self._room = room
        self._limits = limits

    async def create(self, tenant: str, asked: VectorStoreCreate, *, owners: Sequence[Owner]) -> str:
        """Make a vector store without files and return its id.

        Raises TooLarge over the tenant's number of them, Erased when an owner was erased since the request began.
        """
        await self._room.check()
        now, store_id = int(time.time()), id_at("vs_", tenant, secrets.token_hex(16))
        head = asked.model_dump(mode="json", include={"name", "description", "expires_after", "metadata"})
        fields = {"head": orjson.dumps(head), "created": now, "active": now}
        outcome = await self.table.put(tenant, store_id, fields, owners=owners)
        if outcome == "erased":
            raise Erased
        if outcome == "many":
            message = f"This tenant may have at most {self._limits.stores} vector stores. Delete some."
            raise TooLarge(message, code="vector_store_quota_exceeded")
        if asked.expires_after:
            await self.used(tenant, store_id)
        return store_id

    async def get(self, tenant: str, store_id: str) -> VectorStore:
        """Return the vector store. Raises NotFound when the tenant has no such vector store."""
        return _shown(store_id, await self._kept(tenant, store_id))

    async def some(self, tenant: str, store_ids: Sequence[str]) -> list[VectorStore]:
        """Return those of the vector stores that are there."""
        found = zip(store_ids, await self.table.some(tenant, store_ids), strict=True)
        return [_shown(one, fields) for one, fields in found if fields is not None]

    async def update(self, tenant: str, store_id: str, change: VectorStoreUpdate) -> VectorStore:
        """Change the fields that are given. Raises NotFound."""
        given = cast(Json, change.model_dump(mode="json", include=change.model_fields_set))
        await self._changed(tenant, store_id, given)
        return await self.get(tenant, store_id)

    async def used(self, tenant: str, store_id: str) -> None:
        """Note that the vector store is used, from which its end is counted. Raises NotFound."""
        await self._changed(tenant, store_id, {}, active=int(time.time()), quick=True)

    async def _changed(
        self, tenant: str, store_id: str, given: Json, *, active: int | None = None, quick: bool = False
    ) -> None:
        """Change the given fields, or the time of the last use, and the end, which follows from both.

        Begins again where another call has changed them since they were read. Raises NotFound.
        """
        outcome = "stale"
        while outcome == "stale":
            kept = await self._kept(tenant, store_id)
            head, at = _head(kept) | given, int(kept["active"]) if active is None else active
            fields = {"head": orjson.dumps(head), "active": at}
            known = {name: kept[name] for name in fields}
            ends_at = _ends_at(head, at) or 0
            outcome = await self.table.change(tenant, store_id, fields, if_still=known, ends_at=ends_at, quick=quick)
        if outcome == "gone":
            raise _missing()

    async def delete(self, tenant: str, store_id: str) -> None:
        """Delete the vector store with the records of its files. Raises NotFound."""
        await self.get(tenant, store_id)
        await self.clear(tenant, store_id)
        while await self.table.delete(tenant, store_id, if_empty=True) == "rows":  # a file was added meanwhile
            await self.clear(tenant, store_id)

    async def clear(self, tenant: str, store_id: str) -> None:
        """Delete the records of a vector store's files; it does not expire any more."""
        for one in await self.files(tenant, store_id):
            await self.table.delete_row(tenant, store_id, one.file.id)
        await self.table.change(tenant, store_id, {}, ends_at=0)

    async def attach(self, tenant: str, store_id: str, new: Sequence[Attached]) -> dict[str, Attached]:
        """Add files, all or none; return by their ids the ones that are replaced.

        Raises NotFound without the vector store, TooLarge when it is full.
        """
        await self._room.check()
        replaced = await self.table.some_rows(tenant, store_id, [one.file.id for one in new])
        outcome = await self.table.put(tenant, store_id, {}, rows=[one.row() for one in new], known=True, replace=True)
        if outcome == "gone":
            raise _missing()
        if outcome == "rows":
            message = f"A vector store may have at most {self._limits.files} files."
            raise TooLarge(message, code="vector_store_full")
        return {row.id: Attached.of(row) for row in replaced}

    async def change(
        self, tenant: str, known: Attached, *, job: str = "", **fields: object
    ) -> Literal["changed", "full", "gone"]:
        """Change fields of a file; ``job`` has it from then on.

        Returns gone when it has another job or status than the known one: these are changed by one step at a time.
        """
        store_id, expected = known.file.vector_store_id, (known.job, known.file.status)
        while (row := await self.table.row(tenant, store_id, known.file.id)) and (row.version, row.group) == expected:
            new = replace(Attached.of(row).having(**fields), job=job or known.job)
            outcome = await self.table.change_row(tenant, store_id, row, new.row())
            if outcome != "gone":
                return "full" if outcome == "long" else "changed"
        return "gone"

    async def file(self, tenant: str, store_id: str, file_id: str) -> Attached:
        """Return a file. Raises NotFound."""
        row = await self.table.row(tenant, store_id, file_id)
        if row is None:
            raise NotFound("The vector store has no such file.", param="file_id")
        return Attached.of(row)

    async def files(self, tenant: str, store_id: str) -> list[Attached]:
        """Return all files, oldest first."""
        _, rows, _ = await self.table.rows(tenant, store_id, limit=self._limits.files)
        return [Attached.of(row) for row in rows]

    async def batch(self, tenant: str, store_id: str, batch: str) -> list[Attached]:
        """Return the files of a batch, oldest first. Raises NotFound when there are none."""
        found = [one for one in await self.files(tenant, store_id) if one.batch == batch]
        if not found:
            raise NotFound("The vector store has no such file batch.", param="batch_id")
        return found

    async def _kept(self, tenant: str, store_id: str) -> Mapping[str, str]:
        found = await self.table.get(tenant, store_id)
        if found is None:
            raise _missing()
        return found


def _missing() -> NotFound:
    return NotFound("Vector store not found.", param="vector_store_id")


def _head(fields: Mapping[str, str]) -> Json:
    return cast(Json, orjson.loads(fields["head"]))


def _ends_at(head: Json, active: int) -> int | None:
    expires = head.get("expires_after")
    return active + cast(int, expires["days"]) * _DAY_S if isinstance(expires, dict) else None


def _shown(store_id: str, fields: Mapping[str, str]) -> VectorStore:
    head, active = _head(fields), int(fields["active"])
    counts = {status: int(fields.get(f"rows:{status}", 0)) for status in FileCounts.model_fields if status != "total"}
    expires_at = _ends_at(head, active)
    busy = "in_progress" if counts["in_progress"] else "completed"
    return VectorStore.model_validate(
        {
            **head,
            "id": store_id,
            "name": head.get("name") or "",
            "metadata": head.get("metadata") or {},
            "created_at": int(fields["created"]),
            "last_active_at": active,
            "usage_bytes": int(fields["bytes"]),
            "file_counts": counts | {"total": sum(counts.values())},
            "expires_at": expires_at,
            "status": "expired" if expires_at is not None and expires_at <= time.time() else busy,
        }
    )
