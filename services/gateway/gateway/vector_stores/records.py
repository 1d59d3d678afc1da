"""Keeps vector stores and their files in Redis. The texts lie in the memory store."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

import orjson
from redis.asyncio import Redis

from gateway.vector_stores.key_names import Keys
from gateway.vector_stores.schemas import FileCounts, VectorStore, VectorStoreCreate, VectorStoreFile, VectorStoreUpdate
from gateway.vector_stores.scripts import ATTACH, CHANGE, CREATE, DELETE, DETACH, NEXT, TOUCH, UPDATE
from memloop.wire.chat import Json
from memloop.wire.errors import Erased, NotFound, TooLarge
from memloop_state.link import redis_errors
from memloop_state.owners import Owner, owned_args, owned_keys
from memloop_state.partitions import id_at
from memloop_state.room import RedisRoom
from memloop_state.scripts import Script, text

KIND: Final = "vector_stores"
"""What vector stores are among the records of their owners."""
_DAY_S: Final = 24 * 3600
_SWEPT_AT_ONCE: Final = 100


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
    place: int
    """The file's number in its vector store."""

    def dump(self) -> str:
        """Return the record as the scripts read it."""
        kept = {"file": self.file.model_dump(mode="json"), "filename": self.filename, "place": self.place}
        return f"{self.job} {self.file.status} {self.file.usage_bytes} {orjson.dumps(kept).decode()}"

    @classmethod
    def load(cls, raw: str) -> "Attached":
        """Parse the output of ``dump``."""
        job, _, _, body = raw.split(" ", 3)
        kept = orjson.loads(body)
        return cls(VectorStoreFile.model_validate(kept["file"]), job, kept["filename"], kept["place"])


class VectorStoreRecords:
    """Every tenant's vector stores. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis, limits: Limits, *, full_share: float) -> None:
        """``full_share`` is the share of Redis's memory from which nothing more is taken in."""
        self._redis = redis
        self._room = RedisRoom(redis, share=full_share)
        self._keys = Keys(redis)
        self._limits = limits
        self._create = Script(redis, CREATE, acknowledged=True)
        self._next = Script(redis, NEXT)
        self._update = Script(redis, UPDATE, acknowledged=True)
        self._delete = Script(redis, DELETE, acknowledged=True)
        self._attach = Script(redis, ATTACH, acknowledged=True)
        self._change = Script(redis, CHANGE, acknowledged=True)
        self._detach = Script(redis, DETACH, acknowledged=True)
        self._touch = Script(redis, TOUCH)

    async def create(self, tenant: str, asked: VectorStoreCreate, *, owners: Sequence[Owner]) -> str:
        """Make a vector store without files and return its id.

        Raises TooLarge over the tenant's number of them, Erased when an owner was erased since the request began.
        """
        await self._room.check()
        here, now = self._keys.of_name(tenant), int(time.time())
        store_id = id_at("vs_", tenant, secrets.token_hex(16))
        head = asked.model_dump(mode="json", include={"name", "description", "expires_after", "metadata"})
        fields = ["head", orjson.dumps(head).decode(), "created", now, "active", now]
        keys = [*self._of(tenant, store_id), here.vector_stores_of(tenant), *owned_keys(here, owners)]
        owned = owned_args(owners, kind=KIND, record_id=store_id)
        order = time.time_ns() // 1000
        outcome = await self._create(keys, [store_id, order, self._limits.stores, *owned, *fields])
        if outcome == "erased":
            raise Erased
        if outcome == "full":
            message = f"This tenant may have at most {self._limits.stores} vector stores. Delete some."
            raise TooLarge(message, code="vector_store_quota_exceeded")
        await self._touched(tenant, store_id, asked.expires_after.days if asked.expires_after else 0)
        return store_id

    async def get(self, tenant: str, store_id: str) -> VectorStore:
        """Return the vector store. Raises NotFound when the tenant has no such vector store."""
        found = await self._found(tenant, [store_id])
        if not found:
            raise _missing()
        return found[0]

    async def page(
        self, tenant: str, *, limit: int, after: str | None, before: str | None, newest_first: bool
    ) -> tuple[list[VectorStore], bool]:
        """Return vector stores beside the ids given, and whether there are more. Raises NotFound for an unknown id."""
        key = self._keys.of_name(tenant).vector_stores_of(tenant)
        with redis_errors():
            found: object = await self._redis.zrange(key, 0, -1)  # pyright: ignore[reportUnknownMemberType]
        ids = [text(one) for one in cast(Sequence[object], found)]
        shown, more = between(ids[::-1] if newest_first else ids, after=after, before=before, limit=limit)
        return await self._found(tenant, shown), more

    async def update(self, tenant: str, store_id: str, change: VectorStoreUpdate) -> VectorStore:
        """Change the fields that are given. Raises NotFound."""
        head = await self._head(tenant, store_id)
        head |= cast(Json, change.model_dump(mode="json", include=change.model_fields_set))
        if not await self._update.number(self._of(tenant, store_id), [orjson.dumps(head).decode()]):
            raise _missing()
        await self._touched(tenant, store_id, _days(head), renews=False)
        return await self.get(tenant, store_id)

    async def used(self, tenant: str, store_id: str) -> None:
        """Note that the vector store is used, from which its end is counted."""
        await self._touched(tenant, store_id, _days(await self._head(tenant, store_id)))

    async def delete(self, tenant: str, store_id: str) -> None:
        """Delete the vector store with the records of its files. Raises NotFound."""
        await self.get(tenant, store_id)
        keys = [*self._of(tenant, store_id), self._keys.of_name(tenant).vector_stores_of(tenant)]
        await self.clear(tenant, store_id)
        while not await self._delete.number(keys, [store_id]):  # a file was added meanwhile
            await self.clear(tenant, store_id)

    async def clear(self, tenant: str, store_id: str) -> None:
        """Delete the records of a vector store's files; it does not expire any more."""
        for one in await self.files(tenant, store_id):
            await self.detach(tenant, store_id, one.file.id)
        with redis_errors():
            await self._redis.zrem(self._keys.of_name(tenant).vector_stores_ending, f"{tenant} {store_id}")

    async def attach(self, tenant: str, store_id: str, new: Attached) -> None:
        """Add or replace a file. Raises NotFound without the vector store, TooLarge when it is full."""
        await self._room.check()
        here, file_id = self._keys.of_name(tenant), new.file.id
        keys = [*self._of(tenant, store_id), here.vector_stores_with(tenant, file_id)]
        outcome = await self._attach(keys, [store_id, file_id, new.dump(), self._limits.files])
        if outcome == "gone":
            raise _missing()
        if outcome == "full":
            message = f"A vector store may have at most {self._limits.files} files."
            raise TooLarge(message, code="vector_store_full")

    async def change(self, tenant: str, new: Attached) -> Literal["changed", "full", "gone"]:
        """Replace a file's record unless another job has it now, or it is not there any more."""
        keys = self._of(tenant, new.file.vector_store_id)
        args = [new.file.id, new.job, new.dump(), self._limits.bytes]
        return cast(Literal["changed", "full", "gone"], await self._change(keys, args))

    async def next_place(self, tenant: str, store_id: str) -> int:
        """Return the number of the next file of the vector store. Raises NotFound."""
        place = await self._next.number(self._of(tenant, store_id), [])
        if not place:
            raise _missing()
        return place

    async def file(self, tenant: str, store_id: str, file_id: str) -> Attached:
        """Return a file. Raises NotFound."""
        with redis_errors():
            found = await self._redis.hget(self._of(tenant, store_id)[1], file_id)
        if found is None:
            raise NotFound("The vector store has no such file.", param="file_id")
        return Attached.load(text(found))

    async def files(self, tenant: str, store_id: str) -> list[Attached]:
        """Return all files, oldest first."""
        with redis_errors():
            found = await self._redis.hvals(self._of(tenant, store_id)[1])
        return sorted((Attached.load(text(one)) for one in found), key=lambda one: one.place)

    async def detach(self, tenant: str, store_id: str, file_id: str) -> bool:
        """Delete a file's record; return whether there was one."""
        keys = [*self._of(tenant, store_id), self._keys.of_name(tenant).vector_stores_with(tenant, file_id)]
        return bool(await self._detach.number(keys, [store_id, file_id]))

    def new_job(self, tenant: str) -> str:
        """Return the id of a job that will index a file of the tenant."""
        return id_at("vsj_", tenant, secrets.token_hex(16))

    def index_of(self, tenant: str, job_id: str) -> str:
        """Name the sorted set that lists the job."""
        return self._keys.of_id(job_id).indexing_of(tenant)

    async def job(self, job_id: str) -> str | None:
        """Return the payload of an indexing job, or None when it is over or gone."""
        with redis_errors():
            payload = await self._redis.hget(self._keys.job(job_id), "payload")
        return None if payload is None else text(payload)

    async def with_file(self, tenant: str, file_id: str) -> list[str]:
        """Return the ids of the vector stores that have the file."""
        with redis_errors():
            found = await self._redis.smembers(  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
                self._keys.of_name(tenant).vector_stores_with(tenant, file_id)
            )
        return sorted(text(one) for one in cast("set[object]", found))

    async def expired(self) -> list[tuple[str, str]]:
        """Return tenant and id of vector stores that have expired and still have files."""
        lines: list[str] = []
        for partition in self._keys.partitions:
            with redis_errors():
                due: object = await self._redis.zrangebyscore(  # pyright: ignore[reportUnknownMemberType]
                    partition.vector_stores_ending, "-inf", time.time(), start=0, num=_SWEPT_AT_ONCE
                )
            lines += [text(line) for line in cast(Sequence[object], due)]
        return [cast("tuple[str, str]", tuple(line.split(" "))) for line in lines]

    async def _head(self, tenant: str, store_id: str) -> Json:
        with redis_errors():
            head = await self._redis.hget(self._of(tenant, store_id)[0], "head")
        if head is None:
            raise _missing()
        return cast(Json, orjson.loads(text(head)))

    async def _found(self, tenant: str, ids: Sequence[str]) -> list[VectorStore]:
        async with self._redis.pipeline(transaction=False) as pipeline:
            for one in ids:
                pipeline.hgetall(self._of(tenant, one)[0])
            with redis_errors():
                rows = cast("list[dict[object, object]]", await pipeline.execute())
        fields = [{text(name): text(value) for name, value in row.items()} for row in rows]
        return [_shown(one, row) for one, row in zip(ids, fields, strict=True) if "head" in row]

    async def _touched(self, tenant: str, store_id: str, days: int, *, renews: bool = True) -> None:
        keys = [self._of(tenant, store_id)[0], self._keys.of_name(tenant).vector_stores_ending]
        await self._touch(keys, [f"{tenant} {store_id}", int(time.time()), days * _DAY_S, int(renews)])

    def _of(self, tenant: str, store_id: str) -> list[str]:
        here = self._keys.of_name(tenant)
        return [here.vector_store(tenant, store_id), here.vector_store_files(tenant, store_id)]


def between(ids: Sequence[str], *, after: str | None, before: str | None, limit: int) -> tuple[Sequence[str], bool]:
    """Return the ids behind ``after`` and in front of ``before``, and whether there are more. Raises NotFound."""
    for name, one in (("after", after), ("before", before)):
        if one is not None and one not in ids:
            raise NotFound("There is no such id to continue from.", param=name)
    start = 0 if after is None else ids.index(after) + 1
    end = len(ids) if before is None else ids.index(before)
    rest = ids[start:end]
    if before is not None and after is None:  # the page that ends there
        return rest[-limit:], len(rest) > limit
    return rest[:limit], len(rest) > limit


def _missing() -> NotFound:
    return NotFound("Vector store not found.", param="vector_store_id")


def _days(head: Json) -> int:
    expires = head.get("expires_after")
    return cast(int, expires["days"]) if isinstance(expires, dict) else 0


def _shown(store_id: str, row: dict[str, str]) -> VectorStore:
    head, active = cast(Json, orjson.loads(row["head"])), int(row["active"])
    counts = {status: int(row.get(f"count:{status}", 0)) for status in FileCounts.model_fields if status != "total"}
    days = _days(head)
    expires_at = active + days * _DAY_S if days else None
    busy = "in_progress" if counts["in_progress"] else "completed"
    return VectorStore.model_validate(
        {
            **head,
            "id": store_id,
            "name": head.get("name") or "",
            "metadata": head.get("metadata") or {},
            "created_at": int(row["created"]),
            "last_active_at": active,
            "usage_bytes": int(row.get("bytes", 0)),
            "file_counts": counts | {"total": sum(counts.values())},
            "expires_at": expires_at,
            "status": "expired" if expires_at is not None and expires_at <= time.time() else busy,
        }
    )
