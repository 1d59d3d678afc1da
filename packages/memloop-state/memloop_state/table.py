"""Tables of records: a tenant's, with owners, quotas and an end, each step of which is atomic.

A table is declared once, and its steps are one script (``lua/table.lua``)::

    responses = Table(redis, "response", kind="responses", keep_s=30 * 86400, most_bytes=100_000_000)
    outcome = await responses.put("acme", "resp_1", {"response": "{…}"}, size=5, owners=[Owner(namespace, began)])

A record is a hash of texts, and may have *rows* in order: a conversation its items, a vector store its files. All of a
tenant is in one partition, so a quota is compared in the step that stores. A record is noted by its owners in the same
step: an erasure finds it, and a record whose work began before an erasure is refused after it. Of a record without an
owner nothing is noted.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from memloop_state.link import State, all_sent, sent
from memloop_state.owners import Owner, owned_terms
from memloop_state.steps import Guard, Partitions, Steps, Values, guard_of, named

Outcome: TypeAlias = Literal[
    "kept", "changed", "deleted", "taken", "off", "stale", "erased", "gone", "many", "full", "long", "rows", "duplicate"
]
"""What became of a step: done, or refused. ``many``: the tenant has too many records; ``full``: too many bytes;
``long``: the record has too many bytes; ``rows``: too many rows, or any where there may be none; ``off``: the tenant's
table is switched off; ``stale``: what the step builds on is not as it was read.
"""
_SWEPT_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a record. The record counts its rows by ``group``, unless it is ``-``, and their bytes.

    ``version`` and ``group`` hold no space. ``number`` is its place among all that the record has had.
    """

    id: str
    text: str
    bytes: int
    group: str = "-"
    version: str = "-"
    number: int = 0

    def dump(self) -> str:
        """Return the row as the script reads it."""
        return f"{self.version} {self.group} {self.bytes} {self.text}"

    @classmethod
    def load(cls, row_id: str, value: str, number: int) -> "Row":
        """Parse the output of ``dump``."""
        version, group, size, body = value.split(" ", 3)
        return cls(row_id, body, int(size), group, version, number)


@dataclass(frozen=True, slots=True)
class Standing:
    """What a tenant holds in a table, and one of its records: bytes and rows."""

    exists: bool
    tenant_bytes: int
    record_bytes: int
    rows: int


class Table:
    """The records of one table. Methods raise Unavailable when Redis is unreachable.

    ``name`` begins the names of its keys, and ``kind`` is what its records are among those of their owners. Without
    ``keep_s`` a record stays until it is deleted; with it, until it was not stored, added to or renewed for so long.
    ``oldest_out`` lets the oldest records go where there are more than ``most`` of a tenant. Of a table that
    ``switches`` nothing is stored for a tenant until it is switched on: ``switches`` holds a text of each
    that is. With ``tenants`` those with records are listed.
    """

    def __init__(
        self,
        redis: State,
        name: str,
        *,
        kind: str,
        keep_s: float | None = None,
        most: int | None = None,
        most_bytes: int | None = None,
        record_bytes: int | None = None,
        most_rows: int | None = None,
        owner_bytes: int | None = None,
        oldest_out: bool = False,
        switches: bool = False,
        tenants: bool = False,
    ) -> None:
        self._redis: Any = redis
        self._name = name
        self._kind = kind
        self._partitions = Partitions(redis)
        self._keep_ms = None if keep_s is None else int(keep_s * 1000)
        most_of = {"most": most, "most_bytes": most_bytes, "record_bytes": record_bytes, "most_rows": most_rows}
        how = {"owner_bytes": owner_bytes, "oldest_out": oldest_out, "switches": switches, "tenants": tenants}
        self._rules = {"name": name, "keep_ms": self._keep_ms, **most_of, **how}
        self.switches = Values(redis, f"{name}-switch")
        self._step = Steps(redis, "owners", "table")

    async def put(
        self,
        tenant: str,
        record_id: str,
        fields: Mapping[str, str | bytes | int],
        *,
        size: int | None = None,
        rows: Sequence[Row] = (),
        owners: Sequence[Owner] = (),
        guard: Guard | None = None,
        known: bool = False,
        replace: bool = False,
    ) -> Outcome:
        """Store a record of ``size`` bytes beside its rows, in the place of one of that id.

        A ``known`` one must be there: its other fields and rows stay. ``replace`` allows rows whose ids are there. With
        ``guard`` only if that hash has not changed. Returns kept, off, stale, erased, gone, many, duplicate, rows,
        long or full.
        """
        texts = [part for pair in fields.items() for part in pair]
        texts += [part for row in rows for part in (row.id, row.dump())]
        terms = {"size": size, "fields": len(fields), "guard": guard}
        terms |= {"known": known, "new_rows": not replace}
        terms |= {"owners": owned_terms(owners, kind=self._kind, record_id=record_id)}
        outcome, *over = await self._stepped("put", tenant, record_id, terms, texts)
        for one in over:
            await self.delete(tenant, one)
        return outcome

    async def reserve(self, tenant: str, record_id: str, *, size: int, lease_s: float) -> Outcome:
        """Take bytes for a record that is being made, until it is put or released, or the lease ends.

        Returns taken or full.
        """
        terms = {"size": size, "lease_ms": int(lease_s * 1000)}
        return (await self._stepped("reserve", tenant, record_id, terms, quick=True))[0]

    async def release(self, tenant: str, record_id: str) -> None:
        """Give back the bytes that were taken for a record, unless it was put."""
        await self._stepped("release", tenant, record_id, {}, quick=True)

    async def standing(self, tenant: str, record_id: str) -> Standing:
        record, order = (self._key(part, tenant, record_id) for part in ("", "-order"))
        asked = [("EXISTS", record), ("HMGET", self._key("-sizes", tenant), "", record_id), ("ZCARD", order)]
        exists, (held, own), rows = await all_sent(self._redis, asked)
        return Standing(bool(exists), int(held or 0), int(own or 0), rows)

    async def renew(self, tenant: str, record_id: str, names: Sequence[str]) -> list[str]:
        """Return fields of a record and keep it for as long again; nothing where it is gone."""
        return await self._stepped("renew", tenant, record_id, {}, names, quick=True)

    async def change(
        self,
        tenant: str,
        record_id: str,
        fields: Mapping[str, str | bytes | int],
        *,
        counted: bool = False,
        anyway: bool = False,
        if_still: Mapping[str, str] | None = None,
        ends_at: float | None = None,
        quick: bool = False,
    ) -> Outcome:
        """Replace fields of a record; return changed, gone, stale, long or full.

        Their bytes count if ``counted``, ``anyway`` also over the quota. With ``if_still`` only while these fields hold
        what was read. ``ends_at`` (epoch seconds, 0 = never) lists the record in ``ended`` from then on. ``quick`` does
        not wait for replicas.
        """
        guard = None if if_still is None else guard_of(self._key("", tenant, record_id), [*if_still], if_still)
        terms = {"counted": counted, "anyway": anyway, "guard": guard, "ends_at": ends_at}
        texts = [part for pair in fields.items() for part in pair]
        return (await self._stepped("change", tenant, record_id, terms, texts, quick=quick))[0]

    async def delete(self, tenant: str, record_id: str, *, if_empty: bool = False) -> Outcome:
        """Delete a record with its rows, or only one without rows; return deleted, gone or rows."""
        return (await self._stepped("delete", tenant, record_id, {"empty": if_empty}))[0]

    async def change_row(self, tenant: str, record_id: str, old: Row, new: Row) -> Outcome:
        """Replace a row that has not changed since it was read; return changed, gone, long or full."""
        return (await self._stepped("change_row", tenant, record_id, {}, [new.id, old.dump(), new.dump()]))[0]

    async def delete_row(self, tenant: str, record_id: str, row_id: str) -> Outcome:
        """Delete a row; return deleted or gone."""
        return (await self._stepped("delete_row", tenant, record_id, {}, [row_id]))[0]

    async def rows(
        self, tenant: str, record_id: str, *, limit: int, after: str = "", newest_first: bool = False
    ) -> tuple[Literal["found", "after", "gone"], list[Row], bool]:
        """Return rows behind one, and whether there are more; ``after`` where that one is not there."""
        terms = {"limit": limit, "newest": newest_first}
        outcome, *found = await self._stepped("rows", tenant, record_id, terms, [after], quick=True)
        parts = zip(found[1::3], found[2::3], found[3::3], strict=True)
        rows = [Row.load(row_id, value, int(float(number))) for row_id, number, value in parts]
        return outcome, rows, found[:1] == ["true"]

    async def row(self, tenant: str, record_id: str, row_id: str) -> Row | None:
        """Return a row, None where it is gone."""
        found = await self.some_rows(tenant, record_id, [row_id])
        return found[0] if found else None

    async def some_rows(self, tenant: str, record_id: str, row_ids: Sequence[str]) -> list[Row]:
        """Return those of the rows that are there, in the order of their ids."""
        rows, order = (self._key(part, tenant, record_id) for part in ("-rows", "-order"))
        found = await all_sent(self._redis, [("HMGET", rows, *row_ids), ("ZMSCORE", order, *row_ids)])
        each = zip(row_ids, *found, strict=True)
        return [Row.load(one, value, int(number)) for one, value, number in each if value and number is not None]

    async def with_row(self, tenant: str, row_id: str) -> list[str]:
        """Return the ids of the tenant's records that have a row of that id."""
        ids = await self.ids(tenant)
        found = await all_sent(self._redis, [("HEXISTS", self._key("-rows", tenant, one), row_id) for one in ids])
        return [record_id for record_id, has in zip(ids, found, strict=True) if has]

    async def get(self, tenant: str, record_id: str) -> Mapping[str, str] | None:
        """Return a record's fields, None where it is gone. ``bytes`` is what it holds with its rows."""
        (found,) = await self.some(tenant, [record_id])
        return found

    async def some(self, tenant: str, ids: Sequence[str]) -> list[Mapping[str, str] | None]:
        """Return records in the order of their ids, as ``get`` does."""
        records = [("HGETALL", self._key("", tenant, record_id)) for record_id in ids]
        sizes = [("HGET", self._key("-sizes", tenant), record_id) for record_id in ids]
        found = await all_sent(self._redis, [*records, *sizes])
        both = zip(found[: len(ids)], found[len(ids) :], strict=True)
        return [fields | {"bytes": size or "0"} if fields else None for fields, size in both]

    async def ids(self, tenant: str) -> list[str]:
        """Return the ids of the tenant's records: oldest first, or those that end first."""
        since = "-inf" if self._keep_ms is None else int(time.time() * 1000)
        return await sent(self._redis, "ZRANGEBYSCORE", self._key("s", tenant), since, "+inf")

    async def tenants(self) -> list[str]:
        """Return the tenants with records, in the order of their names."""
        found: set[str] = set()
        for part in self._partitions.partitions:
            found |= set(await sent(self._redis, "SMEMBERS", part.key(f"{self._name}s-tenants")))
        return sorted(found)

    async def switch(self, tenant: str, *, on: bool) -> None:
        """Switch the table on or off; what is stored stays."""
        key = self.switches.key(tenant)
        await sent(self._redis, *(("SET", key, "1") if on else ("DEL", key)), sure=True)

    async def ended(self) -> list[tuple[str, str]]:
        """Return tenant and id of records whose ``ends_at`` is over, a hundred of each partition at most."""
        lines: list[str] = []
        for part in self._partitions.partitions:
            key = part.key(f"{self._name}s-ending")
            lines += await sent(self._redis, "ZRANGEBYSCORE", key, "-inf", time.time(), "LIMIT", 0, _SWEPT_AT_ONCE)
        return [cast("tuple[str, str]", tuple(line.split(" "))) for line in lines]

    async def _stepped(
        self,
        step: str,
        tenant: str,
        record_id: str,
        terms: Mapping[str, object],
        texts: Sequence[str | bytes | int] = (),
        *,
        quick: bool = False,
    ) -> list[Any]:
        """Run a step. A ``quick`` one, whose loss in a failover does no harm, does not wait for replicas."""
        args = named(*texts, **self._rules, **terms, tenant=tenant, id=record_id)
        return await self._step.rows(step, [self._partitions.of_name(tenant).root], args, acknowledged=not quick)

    def _key(self, part: str, tenant: str, *record_id: str) -> str:
        return self._partitions.of_name(tenant).key(f"{self._name}{part}", tenant, *record_id)
