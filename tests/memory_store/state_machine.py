"""The real store, on real files and a real Redis, beside :class:`PlainStore`: after every step both must agree."""

import asyncio
import shutil
import uuid
from collections import Counter
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, TypeVar

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from memloop.wire.memory import MemoryDraft, MemoryItem, Namespace, StoreAdd
from memory_store.items.documents import Record, every_record
from memory_store.settings import Settings
from memory_store.vectors.filters import AllOf, Condition, TimeRange
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.api import StoreApi, day
from tests.memory_store.conftest import MODEL, app_over, serving
from tests.memory_store.plain_model import RAW_LIFE, Owner, PlainStore, Said, Seen, iso, within

_T = TypeVar("_T")
_OWNERS: tuple[Owner, ...] = (("t1", "alice", None), ("t1", "alice", "a"), ("t1", "bob", None), ("t2", "alice", None))
_NEVER_S = 10_000_000

owners = st.sampled_from(_OWNERS)
keys = st.sampled_from(("City", "Pet"))
values = st.sampled_from(("Rome", "Oslo", "Paris"))
days = st.integers(1, 9).map(day)
picks = st.integers(0, 99)
lives = st.sampled_from((None, None, timedelta(days=2), timedelta(days=20)))


class SweptOnce(QdrantEdge):
    """Sets ``swept`` when the sweep that begins at the store's start is over: it runs beside the first requests."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, flush_s=_NEVER_S)
        self.swept = asyncio.Event()

    async def count(self, *, where: Condition) -> int:
        """Count; without expired memories nothing is left to do."""
        found = await super().count(where=where)
        if not found and isinstance(where, TimeRange):
            self.swept.set()
        return found

    async def delete(self, *, where: Condition) -> None:
        """Delete; the expired memories are gone."""
        await super().delete(where=where)
        if isinstance(where, TimeRange):
            self.swept.set()


class StoreMachine(RuleBasedStateMachine):
    """Every rule does one thing to both, then compares all that can be seen of everybody."""

    redis_url: ClassVar[str]
    root: ClassVar[Path]
    steps: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.model = PlainStore()
        self.now = datetime(2026, 6, 1, tzinfo=UTC)
        self.folder = self.root / uuid.uuid4().hex
        self.said: list[tuple[StoreAdd, str]] = []
        self.serving: AbstractAsyncContextManager[httpx.AsyncClient] | None = None

    @initialize()
    def start(self) -> None:
        self._open()

    def teardown(self) -> None:
        self._close()
        self.runner.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @rule(owner=owners, key=keys, value=values, at=days, life=lives)
    def say(self, owner: Owner, key: str, value: str, at: datetime, life: timedelta | None) -> None:
        expires = self.now + life if life else None
        request = self._request(owner, key, value, at, expires)
        outcome, memory = self._do(self._add(request))
        assert memory == value
        self.said.append((request, outcome))
        self.model.say(Said(owner, key, value, at, None, at, expires), self.now)
        self._compare("say")

    @rule(owner=owners, value=values, at=days)
    def say_raw(self, owner: Owner, value: str, at: datetime) -> None:
        request = self._request(owner, "turn", value, at, None, kind="RawTurn")
        outcome, _ = self._do(self._add(request))
        assert outcome == "inserted"
        self.said.append((request, outcome))
        self.model.versions.append(Said(owner, "turn", value, at, None, at, self.now + RAW_LIFE, raw=True))
        self._compare("say_raw")

    @rule(pick=picks)
    def deliver_again(self, pick: int) -> None:
        if not self.said:
            return
        request, outcome = self.said[pick % len(self.said)]
        assert self._do(self._add(request))[0] == outcome
        self._compare("deliver_again")

    @rule(pick=picks, owner=owners, value=values, guard=st.sampled_from(("none", "right", "wrong")))
    def edit(self, pick: int, owner: Owner, value: str, guard: str) -> None:
        held = _picked(pick, [one for one in self.model.live(owner, self.now) if not one.raw and one.owner == owner])
        if held is None:
            return
        item = self._find(held)
        wanted = {"none": {}, "right": {"If-Match": f'"{item.version}"'}, "wrong": {"If-Match": str(item.version + 1)}}
        headers = {"x-memloop-tenant": owner[0], **wanted[guard]}
        answer = self._do(self.http.patch(f"/v1/items/{item.id}", json={"memory": value}, headers=headers))
        assert answer.status_code == (412 if guard == "wrong" else 200), answer.text
        if guard != "wrong":
            self.model.edit(held, value, self.now)
        self._compare("edit")

    @rule(pick=picks, owner=owners)
    def delete(self, pick: int, owner: Owner) -> None:
        held = _picked(pick, [one for one in self.model.visible(owner, self.now) if one.owner == owner])
        if held is None:
            return
        item = self._find(held)
        self._do(self._api(owner).delete(item.id))
        self.model.delete(held, self.now)
        self._compare("delete")

    @rule(pick=picks, owner=owners)
    def recover(self, pick: int, owner: Owner) -> None:
        gone = [one for one in self.model.versions if (one.owner, one.status) == (owner, "deleted")]
        held = _picked(pick, gone)
        if held is None:
            return
        item, api = self._find(held), self._api(owner)
        answer = self._do(self.http.post(f"/v1/items/{item.id}/recover", headers=api.tenant))
        possible = self.model.can_recover(held, self.now)
        assert answer.status_code == (200 if possible else 404), answer.text
        if possible:
            back = self.model.recover(held, self.now)
            assert _seen(MemoryItem.model_validate_json(answer.content)) == back.seen
        self._compare("recover")

    @rule(owner=owners)
    def erase(self, owner: Owner) -> None:
        assert self._do(self._api(owner).erase()).vectors == self.model.erase(owner)
        self.said = [one for one in self.said if not within(_owner(one[0].namespace), owner)]
        self._compare("erase")

    @rule(passed=st.sampled_from((timedelta(hours=1), timedelta(days=1), timedelta(days=11))))
    def wait(self, passed: timedelta) -> None:
        self.now += passed
        self._compare("wait")

    @rule(data=st.data(), how=st.sampled_from(("close", "crash", "crash in a write")))
    def restart(self, data: st.DataObject, how: str) -> None:
        """A process that dies leaves writes that were never flushed: all that it acknowledged is there."""
        match how:
            case "close":
                self._close()
                self._open()
            case "crash":
                self._die()
                self._open()
            case _:
                request = self._request(data.draw(owners), data.draw(keys), data.draw(values), data.draw(days), None)
                self._die(request, turns=data.draw(st.integers(0, 12)))
                self._open()
                self._settle(request)
        self._compare(how)

    def _settle(self, request: StoreAdd) -> None:
        """The add that the process died in is there as a whole, or not at all."""
        [draft], at = request.drafts, request.timestamp
        assert at
        with_it = deepcopy(self.model)
        with_it.say(Said(_owner(request.namespace), draft.key, draft.value, at, None, at, None), self.now)
        if self._everything() == _everything_of(with_it):
            self.model = with_it

    @rule(owner=owners, at=days)
    def look_back(self, owner: Owner, at: datetime) -> None:
        api, expected = self._api(owner), self.model.as_of(owner, at, self.now)
        page = self._do(api.page(as_of=at.isoformat(), include_raw="true", limit=500))
        assert sorted(map(_seen, page.items)) == sorted(one.seen for one in expected)
        texts = {one.value for one in expected if not one.raw}
        assert set(self._do(api.found("City Rome", as_of=at.isoformat(), top_k=100))) == texts
        self.steps["look_back"] += 1

    @rule(pick=picks, owner=owners)
    def read_history(self, pick: int, owner: Owner) -> None:
        held = _picked(pick, [one for one in self.model.versions if one.owner == owner and not one.raw])
        shown = [] if held is None else self.model.history(held, self.now)
        if held is None or not shown:
            return
        versions = self._do(self._api(owner).history(self._find(held).id))
        assert sorted(map(repr, map(_seen, versions))) == sorted(repr(one.seen) for one in shown)
        assert len({version.version for version in versions}) == len(versions)
        self.steps["read_history"] += 1

    @rule(owner=owners, limit=st.integers(1, 4))
    def list_by_cursor(self, owner: Owner, limit: int) -> None:
        api, cursor = self._api(owner), None
        ids: list[str] = []
        while True:
            page = self._do(api.page(limit=limit, include_raw="true", **({"cursor": cursor} if cursor else {})))
            ids += [item.id for item in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(set(ids)) == len(ids) == len(self.model.live(owner, self.now))
        self.steps["list_by_cursor"] += 1

    def _open(self) -> None:
        settings = Settings(redis_url=self.redis_url, data_dir=self.folder, embedding_model=MODEL, sweep_s=_NEVER_S)
        self.store = SweptOnce(self.folder)
        self.serving = serving(app_over(self.store, settings, clock=lambda: self.now))
        self.http = self._do(self.serving.__aenter__())
        self._do(asyncio.wait_for(self.store.swept.wait(), PATIENCE_S))
        if self.model.sweep(self.now):
            self.said = []

    def _close(self) -> None:
        if self.serving:
            self._do(self.serving.__aexit__(None, None, None))
        self.serving = None

    def _die(self, request: StoreAdd | None = None, *, turns: int = 0) -> None:
        """What a dead process leaves is what the kernel holds of its files; it never gets to flush them."""
        left = self.root / uuid.uuid4().hex
        self._do(self._copied(left, request, turns))
        self._close()
        shutil.rmtree(self.folder)
        self.folder = left

    async def _copied(self, left: Path, request: StoreAdd | None, turns: int) -> None:
        adding = asyncio.ensure_future(self._add(request)) if request else None
        for _ in range(turns):
            await asyncio.sleep(0)
        shutil.copytree(self.folder, left)
        if adding:
            await adding

    def _do(self, work: Coroutine[object, object, _T]) -> _T:
        return self.runner.run(work)

    def _api(self, owner: Owner) -> StoreApi:
        return StoreApi(self.http, _namespace(owner))

    def _request(
        self, owner: Owner, key: str, value: str, at: datetime, expires: datetime | None, *, kind: str = "UserMemory"
    ) -> StoreAdd:
        draft = MemoryDraft.model_validate({"key": key, "value": value, "memory_type": kind})
        event_id = uuid.uuid4().hex
        return StoreAdd(
            namespace=_namespace(owner), drafts=(draft,), timestamp=at, expires_at=expires, event_id=event_id
        )

    async def _add(self, request: StoreAdd) -> tuple[str, str]:
        answer = await self.http.post("/v1/items", content=request.model_dump_json())
        assert answer.status_code == 200, answer.text
        [written] = answer.json()["results"]
        return written["outcome"], written["item"]["memory"]

    def _find(self, held: Said) -> MemoryItem:
        """The stored item of a version of the model; of two that are alike in all, either."""
        wanted = _fields(held)
        return next(record.item for record in self._records() if _fields_of(record) == wanted)

    def _records(self) -> list[Record]:
        return self._do(every_record(self.store, AllOf(())))

    def _everything(self) -> list[str]:
        return sorted(map(_fields_of, self._records()))

    def _compare(self, step: str) -> None:
        self.steps[step] += 1
        assert self._everything() == _everything_of(self.model)


def _picked(pick: int, held: list[Said]) -> Said | None:
    """One of them; what Hypothesis draws must not hang on what a crash left."""
    return held[pick % len(held)] if held else None


def _everything_of(model: PlainStore) -> list[str]:
    return sorted(map(_fields, model.versions))


def _fields(held: Said) -> str:
    return repr((held.owner, held.raw, held.seen, *map(iso, (held.confirmed, held.expires, held.expires_if_recovered))))


def _fields_of(record: Record) -> str:
    item, owner = record.item, _owner(record.namespace)
    raw = item.memory_type == "RawTurn"
    return repr((owner, raw, _seen(item), *map(iso, (record.confirmed_at, item.expires_at, record.ended_before))))


def _seen(item: MemoryItem) -> Seen:
    return item.key, item.memory, item.version, item.status, iso(item.valid_from), iso(item.valid_to)


def _namespace(owner: Owner) -> Namespace:
    tenant, user_id, agent_id = owner
    return Namespace(tenant=tenant, user_id=user_id, agent_id=agent_id)


def _owner(namespace: Namespace) -> Owner:
    return namespace.tenant, namespace.user_id, namespace.agent_id
