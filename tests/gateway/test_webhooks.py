"""Webhooks of background reads, delivered by the real worker to a receiver on a real port."""

import asyncio
import base64
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from yarl import URL

from gateway.long_read.hosts import ReadHandler
from gateway.long_read.records import ReadRecords
from gateway.memory.dead_letters import DeadLetters
from gateway.queue import Hold
from gateway.webhooks.deliveries import DeliveryHandler, delivery_id, delivery_of
from gateway.webhooks.webhooks import WEBHOOKS_QUEUE, WebhookSecrets
from memloop.wire.errors import Unavailable
from memloop.wire.long_read import LongRead
from memloop_state.queue.jobs import Lease, Submission, Worker
from memloop_state.queue.lanes import LaneQueue
from memloop_state.steps import Guard
from tests.fakes.job_engine import Body, Reply
from tests.fakes.processes import PATIENCE_S
from tests.fakes.webhook_receiver import Receiver, webhook_receiver
from tests.gateway.api_rig import ALICE_KEY, OPERATED, OPERATOR_KEY, Api, api
from tests.gateway.dead_workers import been_silent
from tests.gateway.long_reads import PATH, asked, queued, reader
from tests.gateway.redis_view import keys
from tests.gateway.rig import eventually
from tests.gateway.worker_process import worker_process

LOST = Worker("lost", lease_ms=60_000, idle_ms=60_000)
SECRET = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"


def _secret_of(tenant: str) -> str:
    secrets = WebhookSecrets.parse(SECRET)
    assert secrets is not None
    return secrets.of(tenant)


@asynccontextmanager
async def hooked(
    redis_url: str, answer: Callable[[Body], Reply] = reader, **changes: Any
) -> AsyncGenerator[tuple[Api, Receiver]]:
    """An API that may deliver to loopback, and a receiver there; no worker."""
    settings: dict[str, Any] = {
        "webhook_secret": SECRET,
        "webhook_allow_http": True,
        "webhook_allow_networks": "127.0.0.0/8",
        "webhook_retry_s": 0.02,
        "webhook_attempts": 3,
        "webhook_timeout_s": 30.0,
    }
    async with webhook_receiver(_secret_of("local")) as receiver, api(redis_url, answer, **(settings | changes)) as it:
        yield it, receiver


async def leased(queue: LaneQueue) -> tuple[Lease, Hold]:
    """The queue's next job, begun by a worker that will not end it."""
    found = [await queue.take(LOST, partition=part) for part in queue.keys.partitions]
    (lease,) = [lease for lease in found if lease is not None]
    return lease, Hold(queue, lease)


def _outcome(it: Api, outcome: str) -> float:
    """How many attempts ended so."""
    (found,) = it.rig.work.metrics.longread_webhooks.labels(outcome).collect()
    return next(sample.value for sample in found.samples if sample.name.endswith("_total"))


async def _idle(queue: LaneQueue) -> bool:
    return (await queue.depth()).jobs == 0


async def test_the_end_of_a_read_is_delivered_once_signed_with_the_tenants_secret(redis_url: str) -> None:
    async with hooked(redis_url) as (it, receiver):
        read_id = await queued(it, webhook={"url": receiver.url})
        async with it.rig.working():
            await eventually(lambda: _outcome(it, "delivered") == 1)
            await eventually(lambda: _idle(it.rig.work.reading.webhooks.queue))
        read = (await it.get(f"{PATH}/{read_id}")).json
    (message,) = receiver.messages
    assert message["type"] == "long_read.completed"
    assert message["data"] == {"id": read_id, "object": "long_read", "status": "completed"}
    assert read["status"] == "completed"
    assert set(message) == {"type", "timestamp", "data"}
    assert receiver.ids == [delivery_id(read_id)]


ENDS: dict[str, tuple[Callable[[Body], Reply], dict[str, object]]] = {
    "failed": (lambda body: 400, {}),
    "incomplete": (reader, {"max_llm_calls": 2}),
}


@pytest.mark.parametrize("status", ENDS)
async def test_a_read_that_fails_or_is_cancelled_is_delivered_too(redis_url: str, status: str) -> None:
    answer, fields = ENDS[status]
    async with hooked(redis_url, answer) as (it, receiver), it.rig.working():
        read_id = await queued(it, webhook={"url": receiver.url}, **fields)
        await eventually(lambda: len(receiver.messages) == 1)
    assert receiver.messages[0]["type"] == f"long_read.{status}"
    assert receiver.messages[0]["data"]["id"] == read_id


async def test_a_cancelled_read_that_no_worker_ran_is_delivered(redis_url: str) -> None:
    async with hooked(redis_url) as (it, receiver):
        read_id = await queued(it, webhook={"url": receiver.url})
        for _ in range(2):
            assert (await it.post(f"{PATH}/{read_id}/cancel", {})).json["status"] == "cancelled"
        assert (await it.rig.work.reading.webhooks.queue.depth()).jobs == 1
        async with it.rig.working():
            await eventually(lambda: _idle(it.rig.work.reading.webhooks.queue))
    assert [message["type"] for message in receiver.messages] == ["long_read.cancelled"]
    assert it.rig.engine.calls == []


async def test_a_refused_message_is_sent_again_unchanged_until_it_is_taken(redis_url: str) -> None:
    async with hooked(redis_url) as (it, receiver), it.rig.working():
        receiver.statuses = [500, 404]
        await queued(it, webhook={"url": receiver.url})
        await eventually(lambda: _outcome(it, "delivered") == 1)
        assert _outcome(it, "failed") == 2
    assert len(set(receiver.ids)) == 1
    assert receiver.messages == [receiver.messages[0]] * 3


async def test_a_message_that_is_never_taken_becomes_a_dead_letter_and_the_read_stays(redis_url: str) -> None:
    async with hooked(redis_url) as (it, receiver), it.rig.working():
        receiver.statuses = [500] * 9
        read_id = await queued(it, webhook={"url": receiver.url})
        await eventually(lambda: _outcome(it, "dead") == 1)
        await eventually(lambda: _idle(it.rig.work.reading.webhooks.queue))
        (letter,) = [letter async for letter in DeadLetters(it.rig.work.state).all()]
        assert (await it.get(f"{PATH}/{read_id}")).json["status"] == "completed"
    assert (letter.job_id, letter.error) == (delivery_id(read_id), "The receiver answered 500.")
    assert len(receiver.messages) == 3


async def test_a_receiver_that_is_gone_for_good_is_asked_once(redis_url: str) -> None:
    async with hooked(redis_url) as (it, receiver), it.rig.working():
        receiver.statuses = [410]
        await queued(it, webhook={"url": receiver.url})
        await eventually(lambda: _outcome(it, "gone") == 1)
        await eventually(lambda: _idle(it.rig.work.reading.webhooks.queue))
        assert [letter async for letter in DeadLetters(it.rig.work.state).all()] == []
    assert len(receiver.messages) == 1


async def test_a_redirect_is_not_followed(redis_url: str) -> None:
    async with hooked(redis_url) as (it, receiver), it.rig.working():
        receiver.statuses = [307]
        await queued(it, webhook={"url": receiver.url})
        await eventually(lambda: _outcome(it, "delivered") == 1)
    assert (len(receiver.messages), receiver.redirected) == (2, 0)


async def test_a_receiver_that_does_not_answer_is_given_up_in_time(redis_url: str) -> None:
    async with hooked(redis_url, webhook_timeout_s=0.1, webhook_attempts=1) as (it, receiver), it.rig.working():
        receiver.holding = True
        await queued(it, webhook={"url": receiver.url})
        await eventually(lambda: _outcome(it, "dead") == 1)
        (letter,) = [letter async for letter in DeadLetters(it.rig.work.state).all()]
    assert letter.error == "The receiver could not be reached: TimeoutError."


async def test_a_name_that_leads_to_a_private_address_is_never_connected_to(redis_url: str) -> None:
    async with hooked(redis_url, webhook_allow_networks="") as (it, receiver), it.rig.working():
        url = URL(receiver.url).with_path("/in")
        refused = await it.post(PATH, asked(background=True, webhook={"url": str(url.with_host("localhost"))}))
        assert (refused.status, refused.error["param"]) == (422, "webhook.url")
        record = LongRead(id="lr_1", status="completed", created_at=1, completed_at=2, model="m", strategy="memagent")
        webhooks = it.rig.work.reading.webhooks.queue
        at = webhooks.keys.of_id(record.id)
        await webhooks.submit(delivery_of(record, tenant="local", url=str(url.with_host("localhost")), at=at))
        await eventually(lambda: _outcome(it, "dead") == 1)
        assert _outcome(it, "refused") == 3
    assert receiver.messages == []


async def test_the_connection_goes_to_the_address_that_was_checked_under_the_names_host(redis_url: str) -> None:
    answers = iter([["127.0.0.1"], ["10.255.255.1"]])

    async def lookup(host: str, port: int) -> list[str]:
        assert host == "hooks.test"
        return next(answers)

    async with hooked(redis_url) as (it, receiver):
        url = URL(receiver.url).with_host("hooks.test")
        record = LongRead(id="lr_1", status="completed", created_at=1, completed_at=2, model="m", strategy="memagent")
        webhooks = it.rig.work.reading.webhooks.queue
        at = webhooks.keys.of_id(record.id)
        await webhooks.submit(delivery_of(record, tenant="local", url=str(url), at=at))
        work = it.rig.work
        handler = DeliveryHandler(work.state, work.reading.webhooks.rules, work.metrics, timeout_s=30, lookup=lookup)
        lease, hold = await leased(it.rig.work.reading.webhooks.queue)
        ending = await handler.run(lease, hold)
    assert ending.status == "delivered"
    assert receiver.hosts == [f"hooks.test:{url.port}"]
    assert len(list(answers)) == 1  # nobody asked a second time


async def test_a_worker_killed_while_it_delivers_leaves_the_message_to_the_next(redis_url: str) -> None:
    async with hooked(redis_url) as (it, receiver):
        receiver.holding = True
        read_id = await queued(it, webhook={"url": receiver.url})
        async with worker_process(it.rig) as process:
            async with asyncio.timeout(PATIENCE_S):
                await receiver.reached.wait()
            await process.signalled(signal.SIGKILL)
        receiver.holding = False
        async with it.rig.working():
            await eventually(lambda: _outcome(it, "delivered") == 1)
    assert receiver.ids == [delivery_id(read_id)] * 2
    assert receiver.messages[0] == receiver.messages[1]


class Unreachable(LaneQueue):
    """A queue that takes nothing any more."""

    async def submit(self, job: Submission, *, quota_bytes: int = 0, guard: Guard | None = None) -> bool:
        raise Unavailable("scripted")


@pytest.mark.parametrize("queue", [LaneQueue, Unreachable], ids=["after the message was queued", "before"])
async def test_a_worker_lost_between_the_reads_end_and_its_jobs_end_delivers_it_once(
    redis_url: str, queue: type[LaneQueue]
) -> None:
    async with hooked(redis_url) as (it, receiver):
        read_id = await queued(it, webhook={"url": receiver.url})
        work, reading = it.rig.work, it.rig.work.reading
        records = ReadRecords(work.state, reading.queue, queue(work.state, WEBHOOKS_QUEUE))
        lease, hold = await leased(reading.queue)
        with suppress(Unavailable):
            await ReadHandler(replace(reading, records=records)).run(lease, hold)
        assert (await it.get(f"{PATH}/{read_id}")).json["status"] == "completed"
        assert (await reading.queue.depth()).jobs == 1
        await been_silent(work.state, LOST.name)
        async with it.rig.working():
            await eventually(lambda: _outcome(it, "delivered") == 1)
            await eventually(lambda: _idle(reading.queue))
            await eventually(lambda: _idle(reading.webhooks.queue))
    assert receiver.ids == [delivery_id(read_id)]
    assert len(it.rig.engine.calls) == 3


async def test_deleting_a_read_forgets_its_message(redis_url: str) -> None:
    async with hooked(redis_url) as (it, receiver):
        read_id = await queued(it, webhook={"url": receiver.url})
        await it.post(f"{PATH}/{read_id}/cancel", {})
        assert not await _idle(it.rig.work.reading.webhooks.queue)
        await it.call("DELETE", f"{PATH}/{read_id}")
        assert await _idle(it.rig.work.reading.webhooks.queue)
        assert await keys(it.rig.work.state, f"*{delivery_id(read_id)}*") == []


async def test_a_webhook_is_for_background_reads_and_for_an_address_that_may_be_reached(redis_url: str) -> None:
    async with hooked(redis_url, webhook_allow_networks="") as (it, receiver):
        foreground = await it.post(PATH, asked(webhook={"url": "https://hooks.example/in"}))
        private = await it.post(PATH, asked(webhook={"url": receiver.url}, background=True))
    async with api(redis_url, reader) as it:
        unserved = await it.post(PATH, asked(webhook={"url": "https://hooks.example/in"}, background=True))
    assert (foreground.status, "background" in foreground.error["message"]) == (422, True)
    assert (private.status, private.error["param"]) == (422, "webhook.url")
    assert (unserved.status, unserved.error["code"]) == (501, "not_implemented")


async def test_an_admin_key_is_shown_its_own_tenants_secret(redis_url: str) -> None:
    operator = {"Authorization": f"Bearer {OPERATOR_KEY}"}
    async with api(redis_url, reader, webhook_secret=SECRET, api_keys=OPERATED) as it:
        path = "/v1/admin/webhook-secret?tenant=a"
        shown = await it.call("GET", path, headers=operator)
        denied = await it.call("GET", path, headers={"Authorization": f"Bearer {ALICE_KEY}"})
    assert shown.json == {"object": "webhook_secret", "tenant": "a", "secret": _secret_of("a")}
    assert denied.status == 403
