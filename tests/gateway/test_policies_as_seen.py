"""Writes use the policies that a process has seen last, and none of them misses a change made by another process."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from redis.asyncio import Redis

from gateway.memory.jobs import DirectWrite, MemoryJob, MemoryQueue, new_event_id
from gateway.metrics import Metrics
from gateway.policy import keeper_of
from gateway.policy.merging import read_policies
from gateway.policy.policies import Policies
from gateway.queue import QueueRules
from gateway.responses.records import ResponseRecords, StoredResponse, new_response_id
from gateway.settings import GatewaySettings, WorkerSettings
from memloop.wire.errors import NotFound
from memloop.wire.memory import Namespace, Scope, Source
from memloop.wire.policy import MemoryPolicy
from memloop_service import new_registry
from memloop_state.connecting import connect
from memloop_state.link import is_cluster
from tests.gateway.rig import enqueued, memory_queue


class CountedPolicies(Policies):
    """Policies that count how often they are read."""

    loads = 0

    async def load(self, tenant: str, scopes: Iterable[Scope]) -> Mapping[str, str]:
        self.loads += 1
        return await super().load(tenant, scopes)


ALICE = Namespace(tenant="a", user_id="alice")
NEVER = MemoryPolicy(never=("the vault",))
SAID = "We met. The code of the vault is on the door. It rained."
MAIL = "Write to ada@example.org."


@pytest.fixture
async def redis(redis_url: str) -> AsyncGenerator[Redis]:
    async with connect(redis_url, connect_timeout_s=5, read_timeout_s=5) as client:
        yield client


@pytest.fixture
def elsewhere(redis: Redis) -> Policies:
    """The policies as another process has them."""
    return keeper_of(WorkerSettings(), redis, Metrics(new_registry())).policies


async def kept(redis: Redis, queue: MemoryQueue, said: str = SAID) -> str:
    """Queue a write and return its text as it lies in Redis."""
    event = await enqueued(queue, [Source(role="user", content=said, timestamp=datetime.now(UTC))], namespace=ALICE)
    payload = await redis.hget(queue.lanes.keys.job(event), "payload")
    return MemoryJob.model_validate_json(payload or "").turns[0].content


async def test_a_policy_set_by_another_process_holds_for_the_next_write(redis: Redis, elsewhere: Policies) -> None:
    queue = memory_queue(redis)
    assert "vault" in await kept(redis, queue)
    await elsewhere.put("a", "user:alice", NEVER)
    assert "vault" not in await kept(redis, queue)
    assert "vault" not in await kept(redis, queue)


async def test_a_policy_of_the_tenant_or_of_the_app_holds_as_well(redis: Redis, elsewhere: Policies) -> None:
    queue = memory_queue(redis)
    assert "vault" in await kept(redis, queue)
    await elsewhere.put("a", "app:alice", NEVER)
    assert "vault" not in await kept(redis, queue)
    await elsewhere.delete("a", "app:alice")
    assert "vault" in await kept(redis, queue)


async def test_a_deleted_and_a_changed_policy_hold_no_longer(redis: Redis, elsewhere: Policies) -> None:
    queue = memory_queue(redis)
    await elsewhere.put("a", "user:alice", NEVER)
    assert "vault" not in await kept(redis, queue)
    await elsewhere.put("a", "user:alice", MemoryPolicy(never=("It rained",)))
    changed = await kept(redis, queue)
    assert ("vault" in changed, "rained" in changed) == (True, False)
    await elsewhere.delete("a", "user:alice")
    assert await kept(redis, queue) == SAID


async def directly(queue: MemoryQueue) -> DirectWrite:
    """Begin a write that bypasses the queue, and leave its lane if it has taken it."""
    turns = (Source(role="user", content=SAID, timestamp=datetime.now(UTC)),)
    job = MemoryJob(event_id=new_event_id(ALICE), namespace=ALICE, turns=turns, infer=False)
    begun = await queue.begin_direct_write(job)
    if begun.token is not None:
        await queue.lanes.leave_lane(ALICE.lane(), begun.token)
    return begun


def said_by(write: DirectWrite) -> str:
    return write.job.turns[0].content


async def test_a_direct_write_misses_no_change_that_another_process_has_made(redis: Redis, elsewhere: Policies) -> None:
    queue = memory_queue(redis)
    assert said_by(await directly(queue)) == SAID
    await elsewhere.put("a", "user:alice", NEVER)
    assert "vault" not in said_by(await directly(queue))
    assert "vault" not in said_by(await directly(queue))
    await elsewhere.delete("a", "user:alice")
    assert said_by(await directly(queue)) == SAID


async def test_a_direct_write_whose_lane_is_busy_loses_nothing_to_a_policy_that_is_gone(
    redis: Redis, elsewhere: Policies
) -> None:
    queue = memory_queue(redis)
    await elsewhere.put("a", "user:alice", NEVER)
    assert "vault" not in said_by(await directly(queue))
    await elsewhere.delete("a", "user:alice")
    await enqueued(queue, [Source(role="user", content="Tea.", timestamp=datetime.now(UTC))], namespace=ALICE)
    begun = await directly(queue)
    assert (begun.token, said_by(begun)) == (None, SAID)


async def test_a_direct_write_takes_no_round_trip_for_policies_on_one_server(redis: Redis) -> None:
    metrics = Metrics(new_registry())
    keeper = keeper_of(WorkerSettings(), redis, metrics)
    policies = CountedPolicies(redis, default_kinds=frozenset(), filed=read_policies(None))
    keeper = replace(keeper, policies=policies)
    await directly(MemoryQueue(redis, rules=QueueRules(), refused=metrics.memory_writes_not_admitted, keeper=keeper))
    assert policies.loads == int(is_cluster(redis))


async def test_what_was_redacted_before_a_change_was_seen_is_counted_once(redis: Redis, elsewhere: Policies) -> None:
    metrics = Metrics(new_registry())
    keeper = keeper_of(WorkerSettings(redact="email"), redis, metrics)
    queue = MemoryQueue(redis, rules=QueueRules(), refused=metrics.memory_writes_not_admitted, keeper=keeper)
    await elsewhere.put("a", "user:alice", NEVER)
    assert "ada@" not in await kept(redis, queue, MAIL)
    assert metrics.memory_redacted.labels("email")._value.get() == 1  # pyright: ignore[reportPrivateUsage]


async def test_a_response_is_not_kept_by_policies_that_have_changed(redis: Redis, elsewhere: Policies) -> None:
    records = ResponseRecords(redis, GatewaySettings())
    response = StoredResponse({"id": new_response_id("a"), "output": []}, ())
    await records.begin("a", response.id, size=10)
    seen = elsewhere.seen(ALICE)
    assert seen is not None
    await elsewhere.put("a", "user:alice", NEVER)
    assert await records.keep(response, ALICE, 0, guard=seen[1]) == "stale"
    with pytest.raises(NotFound):
        await records.get("a", response.id)
    await elsewhere.delete("a", "user:alice")
    assert await records.keep(response, ALICE, 0, guard=seen[1]) == "kept"
    assert (await records.get("a", response.id)).response == response.response
