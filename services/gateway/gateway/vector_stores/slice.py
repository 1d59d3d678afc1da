"""Bundles the records of vector stores, the queue of their files, and where their texts are; searches their chunks."""

import asyncio
import math
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, TypeAlias, cast

from pydantic import JsonValue

from gateway.files import Files
from gateway.policy import Keeper, redacted_json
from gateway.queue import LaneQueue, QueueRules, Submission
from gateway.settings import GatewaySettings
from gateway.vector_stores.records import NO_JOB, Attached, Limits, VectorStoreRecords
from gateway.vector_stores.schemas import (
    AttributeValue,
    FileAttach,
    FileSearch,
    Found,
    SearchContent,
    SearchFields,
    VectorStore,
    VectorStoreCreate,
    VectorStoreFile,
    passes,
)
from memloop.wire.base import Wire
from memloop.wire.errors import Conflict, DependencyError, MemloopError, NotFound
from memloop.wire.memory import Namespace, Scope, SearchHit, StoreSearch
from memloop_clients import StoreClient
from memloop_service import of_app
from memloop_state.link import State
from memloop_state.owners import Owner
from memloop_state.room import Room
from memloop_state.steps import id_at

_IDS_OF_A_CONDITION: Final = 200
_DECIMALS: Final = 4


def chunks_in(tenant: str, store_id: str) -> Scope:
    """Return where the memory store holds a vector store's chunks: beside the tenant's memories, in no list of them.

    No key's tenant has a colon in its name.
    """
    return Scope(tenant=f"files:{tenant}", user_id=store_id)


def chunks_of_file(tenant: str, store_id: str, file_id: str) -> Namespace:
    """Return where the chunks of one file are."""
    return Namespace(tenant=f"files:{tenant}", user_id=store_id, agent_id=file_id)


INDEX_QUEUE: Final = "vector-stores"
_ATTACHING: Final = "memloop:vector-stores:attaching"
"""Lists, by the time at which the sweep looks at them, files that are added and whose jobs may not be queued yet."""
_ATTACHING_S: Final = 60.0


class IndexJob(Wire):
    """The payload of a job that indexes one file of a vector store, maybe ``again``."""

    tenant: str
    vector_store_id: str
    file_id: str
    job: str
    again: bool = False


def _job(tenant: str, one: Attached, *, again: bool, queue: LaneQueue) -> Submission:
    """Return the job that indexes a file."""
    at = {"tenant": tenant, "vector_store_id": one.file.vector_store_id, "file_id": one.file.id}
    payload = IndexJob(**at, job=one.job, again=again).model_dump_json()
    fields = {"tenant": tenant, "status": "queued", "record": "{}", "payload": payload}
    index = queue.keys.of_id(one.job).key("indexing", tenant)
    return Submission(one.job, one.job, created_ms=int(time.time() * 1000), index=index, fields=fields)


@dataclass(frozen=True, slots=True)
class VectorStores:
    """Every tenant's vector stores. Methods raise Unavailable without the state or the memory store."""

    records: VectorStoreRecords
    queue: LaneQueue
    files: Files
    store: StoreClient
    keeper: Keeper

    async def create(self, tenant: str, asked: VectorStoreCreate, *, owners: Sequence[Owner]) -> VectorStore:
        """Make a vector store with its files, or none. Raises as ``VectorStoreRecords.create`` and ``attach`` do."""
        store_id = await self.records.create(tenant, asked, owners=owners)
        each = [FileAttach(file_id=one, chunking_strategy=asked.chunking_strategy) for one in asked.file_ids]
        try:
            if each:
                await self.attach(tenant, store_id, each)
            return await self.records.get(tenant, store_id)
        except BaseException:
            with suppress(DependencyError, NotFound):  # a job that is queued already finds its file gone, and ends
                await asyncio.shield(self.records.delete(tenant, store_id))
            raise

    async def attach(
        self, tenant: str, store_id: str, asked: Sequence[FileAttach], *, batch: str = ""
    ) -> list[VectorStoreFile]:
        """Add uploaded files and queue their indexing. A file that is there is indexed again.

        Raises NotFound without one of the files or the vector store, Conflict for one that has expired, TooLarge when
        it is full, RateLimited when the queue is: none is added then, and those that are there stay.
        """
        await self.open_store(tenant, store_id)
        stored, now = await self.files.stored().some(tenant, [one.file_id for one in asked]), int(time.time())
        known = {one.file.id: one.file.filename for one in stored}
        each = {one.file_id: one for one in asked}
        clean = cast("list[JsonValue]", await self.clean(tenant, [one.attributes or {} for one in each.values()]))
        new = [
            Attached(
                VectorStoreFile(
                    id=one.file_id,
                    created_at=now,
                    vector_store_id=store_id,
                    status="in_progress",
                    attributes=cast("dict[str, AttributeValue]", attributes),
                    chunking_strategy=one.chunks,
                ),
                id_at("vsj_", tenant, secrets.token_hex(16)),
                known[one.file_id],
                batch,
            )
            for one, attributes in zip(each.values(), clean, strict=True)
        ]
        line = f"{tenant} {store_id} {new[0].job}"
        await self.queue.indexes.add(_ATTACHING, {line: time.time() + _ATTACHING_S}, sure=True)
        there = await self.records.attach(tenant, store_id, new)
        queued = set[str]()
        try:
            for one in new:
                await self.queue.admit(_job(tenant, one, again=one.file.id in there, queue=self.queue))
                queued.add(one.file.id)
        except MemloopError:
            if kept := [one for file_id, one in there.items() if file_id not in queued]:
                await self.records.attach(tenant, store_id, kept)
            for file_id in each.keys() - there.keys():
                await self.records.table.delete_row(tenant, store_id, file_id)
            raise
        await self.queue.indexes.remove(_ATTACHING, line)
        await self.records.used(tenant, store_id)
        return [one.file for one in new]

    async def cancel(self, tenant: str, store_id: str, batch: str) -> None:
        """Take a batch's files that are not indexed yet from their jobs, which then end. Raises NotFound."""
        for one in await self.records.batch(tenant, store_id, batch):
            if one.file.status == "in_progress":
                await self.records.change(tenant, one, job=NO_JOB, status="cancelled", usage_bytes=0)

    async def update_file(
        self, tenant: str, store_id: str, file_id: str, attributes: dict[str, AttributeValue]
    ) -> VectorStoreFile:
        """Replace a file's attributes, by which searches filter. Raises NotFound."""
        clean = await self.clean(tenant, attributes)
        while True:
            known = await self.records.file(tenant, store_id, file_id)
            if await self.records.change(tenant, known, attributes=clean) == "changed":
                return known.having(attributes=clean).file

    async def detach(self, tenant: str, store_id: str, file_id: str) -> None:
        """Take a file out of a vector store; a running job notices. Raises NotFound."""
        await self.records.file(tenant, store_id, file_id)
        await self._take_out(tenant, store_id, file_id)

    async def delete(self, tenant: str, store_id: str) -> None:
        """Delete a vector store with its chunks; the files stay. Raises NotFound."""
        await self.records.get(tenant, store_id)
        await self._erase(tenant, store_id)
        await self.records.delete(tenant, store_id)
        await self._erase(tenant, store_id)  # what a job wrote meanwhile

    async def search(
        self, tenant: str, store_id: str, query: str, asked: SearchFields, *, max_tokens: int | None = None
    ) -> list[Found]:
        """Return the best chunks, best first. Raises NotFound, Conflict for an expired vector store."""
        await self.open_store(tenant, store_id)
        every = await self.records.files(tenant, store_id)
        files = {
            one.file.id: one
            for one in every
            if one.file.status == "completed" and (asked.filters is None or passes(asked.filters, one.file.attributes))
        }
        found = list[Found]()
        if files:
            ids = sorted(files)
            groups: list[JsonValue] = [
                {"agent_id": {"in": [*ids[start : start + _IDS_OF_A_CONDITION]]}}
                for start in range(0, len(ids), _IDS_OF_A_CONDITION)
            ]
            request = StoreSearch(
                namespace=chunks_in(tenant, store_id),
                query=query,
                top_k=asked.max_num_results,
                filters=None if len(files) == len(every) else {"OR": groups},
                max_tokens=max_tokens,
            )
            hits = (await self.store.search(request)).results
            found = [_found(hit, one) for hit in hits if (one := files.get(hit.item.agent_id or ""))]
        await self.records.used(tenant, store_id)
        least = asked.ranking_options.score_threshold if asked.ranking_options is not None else 0.0
        return [one for one in found if one.score >= least]

    async def file_search(self, tenant: str, tool: FileSearch, query: str, *, max_tokens: int) -> list[Found]:
        """Return the best chunks of the tool's vector stores. Raises as ``search``."""
        found = [
            one
            for store_id in dict.fromkeys(tool.vector_store_ids)
            for one in await self.search(tenant, store_id, query, tool, max_tokens=max_tokens)
        ]
        return sorted(found, key=lambda one: -one.score)[: tool.max_num_results]

    async def check(self, tenant: str, tool: FileSearch) -> None:
        """Raise NotFound or Conflict unless the tool's vector stores can be searched."""
        for store_id in tool.vector_store_ids:
            await self.open_store(tenant, store_id)

    async def open_store(self, tenant: str, store_id: str) -> VectorStore:
        """Return a vector store that has not expired. Raises NotFound, Conflict."""
        found = await self.records.get(tenant, store_id)
        if found.status == "expired":
            raise Conflict("The vector store has expired.", param="vector_store_id", code="vector_store_expired")
        return found

    async def clean(self, tenant: str, value: object) -> JsonValue:
        """Return texts as the tenant's policies allow them to be kept."""
        scope = Scope(tenant=tenant)
        redactions = await self.keeper.redactions(tenant, [scope])
        return cast(JsonValue, redactions.applied(scope, partial(redacted_json, value), value))

    async def forget_file(self, tenant: str, file_id: str) -> None:
        """Take a file out of all vector stores."""
        for store_id in await self.records.table.with_row(tenant, file_id):
            await self._take_out(tenant, store_id, file_id)

    async def sweep(self) -> None:
        """Queue the jobs of files whose attaching ended before that; empty vector stores that have expired."""
        while lines := await self.queue.indexes.due(_ATTACHING, time.time(), most=100):
            for tenant, store_id, _ in (line.rsplit(" ", 2) for line in lines):  # a tenant may have blanks
                for one in await self.records.files(tenant, store_id):
                    if one.file.status == "in_progress":  # one that has its job gets no other
                        await self.queue.submit(_job(tenant, one, again=True, queue=self.queue))
            await self.queue.indexes.remove(_ATTACHING, *lines)
        for tenant, store_id in await self.records.table.ended():
            await self.records.clear(tenant, store_id)
            await self._erase(tenant, store_id)

    async def _take_out(self, tenant: str, store_id: str, file_id: str) -> None:
        await self.records.table.delete_row(tenant, store_id, file_id)
        await self.store.erase(chunks_of_file(tenant, store_id, file_id))

    async def _erase(self, tenant: str, store_id: str) -> None:
        where = chunks_in(tenant, store_id)
        await self.store.erase(Namespace(tenant=where.tenant, user_id=store_id))


def _found(hit: SearchHit, one: Attached) -> Found:
    """Return the result. The memory store's score is a cosine and more, so it is pressed between 0 and 1."""
    score = round(math.tanh(max(0.0, hit.score)), _DECIMALS)
    content = (SearchContent(text=hit.item.memory),)
    return Found(
        file_id=one.file.id, filename=one.filename, score=score, attributes=one.file.attributes, content=content
    )


def open_vector_stores(
    settings: GatewaySettings, state: State, rules: QueueRules, *, files: Files, store: StoreClient, keeper: Keeper
) -> VectorStores:
    """Build the slice from the settings. A file that is deleted leaves its vector stores."""
    limits = Limits(settings.tenant_vector_stores, settings.vector_store_files, settings.vector_store_bytes)
    records = VectorStoreRecords(state, Room(state, share=settings.redis_full_share), limits)
    queue = LaneQueue(state, INDEX_QUEUE, rules=rules)
    opened = VectorStores(records, queue, files, store, keeper)
    if files.records is not None:
        files.records.before_deletion(opened.forget_file)
    return opened


VectorStoresDep: TypeAlias = Annotated[VectorStores, of_app("vector_stores")]
