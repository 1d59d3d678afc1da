"""A memory write that fails is seen: by its user's next chat, by readiness, in metrics and log, until one succeeds."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from gateway.memory.handler import is_refusal
from memloop.wire.errors import EngineError
from tests.fakes import strict_shapes as shape
from tests.fakes.job_engine import add_memory
from tests.fakes.strict_endpoint import StrictEndpoint, strict_endpoint
from tests.fakes.strict_shapes import Body, Refused
from tests.fakes.strict_specs import SPECS, Spec
from tests.gateway.api_rig import Api, api
from tests.gateway.rig import ALICE, eventually, script

BY_NAME = {spec.name: spec for spec in SPECS}


def no_loops(body: Body) -> Refused | None:
    """An endpoint that answers the chats of clients, and refuses every request of a loop."""
    return shape.ollama(400, f"{body['model']} is not for this") if "max_tokens" in body else None


@asynccontextmanager
async def served_by(redis_url: str, spec: Spec) -> AsyncGenerator[tuple[Api, StrictEndpoint]]:
    """A gateway and a worker on a strict endpoint."""
    changes: dict[str, Any] = {"model": spec.model, "engine_dialect": spec.dialect, "job_attempts": 2}
    key = SecretStr("k") if spec.headers else None
    async with (
        strict_endpoint(spec) as endpoint,
        api(redis_url, script(500), engine_url=endpoint.url, engine_api_key=key, **changes) as gateway,
        gateway.rig.working(),
    ):
        yield gateway, endpoint


async def said(gateway: Api, text: str = "I bought a red boat. I am Ann.", **memory: object) -> Body:
    """What a chat of Alice answers about memory."""
    body = {"messages": [{"role": "user", "content": text}], "memory": {"user_id": "alice", **memory}}
    answer = await gateway.post("/v1/chat/completions", {"model": gateway.rig.settings.model, **body})
    assert answer.status == 200, answer.raw
    return answer.json["memory"]


async def test_a_refused_write_is_seen_until_one_succeeds(redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="gateway.memory.handler")
    async with served_by(redis_url, replace(BY_NAME["ollama"], rules=(no_loops,))) as (gateway, endpoint):
        first = await said(gateway)
        assert first["error"] is None
        event = await gateway.rig.event(first["write_event_id"])
        assert (event.status, event.error) == ("kept_verbatim", "the engine answered 400: m is not for this")
        assert (await said(gateway, mode="read"))["error"] is None  # what was said is a memory
        ready = await gateway.get("/readyz")
        assert ready.status == 200
        warning = ready.json["warnings"]["memory_writes"]
        assert "400" in warning
        assert "MEMLOOP_ENGINE_DIALECT" in warning
        assert [record.getMessage() for record in caplog.records if record.name == "gateway.memory.handler"] == [
            warning
        ]
        counted = gateway.rig.work.memory.metrics.memory_writes_refused.labels("400")
        assert counted._value.get() == 2  # pyright: ignore[reportPrivateUsage] - the client has no other way to read it

        endpoint.spec = BY_NAME["ollama"]
        assert (await gateway.rig.event((await said(gateway))["write_event_id"])).status == "completed"
        assert (await said(gateway, mode="read"))["error"] is None
        assert "warnings" not in (await gateway.get("/readyz")).json


async def test_a_key_that_the_endpoint_refuses_is_seen_while_the_write_waits(redis_url: str) -> None:
    async with served_by(redis_url, BY_NAME["azure v1"]) as (gateway, endpoint):
        first = await said(gateway)
        assert (await gateway.rig.event(first["write_event_id"])).status == "completed"
        endpoint.spec = replace(endpoint.spec, headers={"api-key": "another"})
        event_id = await gateway.rig.write("It is a sailing boat.")

        async def seen() -> bool:
            return (await gateway.rig.work.memory.pending.of_user(ALICE)).failed is not None

        await eventually(seen)
        warning = (await gateway.get("/readyz")).json["warnings"]["memory_writes"]
        assert "401" in warning
        assert "MEMLOOP_ENGINE_API_KEY" in warning
        endpoint.spec = BY_NAME["azure v1"]
        assert (await gateway.rig.event(event_id)).status == "completed"


async def test_a_write_whose_memories_the_store_refuses_is_seen_as_well(redis_url: str) -> None:
    async with api(redis_url, script(add_memory("red")), job_attempts=1) as gateway, gateway.rig.working():
        gateway.rig.store.refuse_memories = 422
        first = await said(gateway)
        event = await gateway.rig.event(first["write_event_id"])
        error = (await said(gateway, mode="read"))["error"]
        ready = (await gateway.get("/readyz")).json
    assert (event.status, event.attempts) == ("failed", 1)
    assert f"its memory write {event.event_id} failed" in error
    assert "warnings" not in ready


async def test_another_user_does_not_see_it_and_erase_forgets_it(redis_url: str) -> None:
    async with api(redis_url, script(add_memory("red")), job_attempts=1) as gateway, gateway.rig.working():
        gateway.rig.store.refuse_memories = 422
        await gateway.rig.event((await said(gateway))["write_event_id"])
        assert (await said(gateway, mode="read", user_id="bob"))["error"] is None
        assert (await said(gateway, mode="read"))["error"] is not None
        assert (await gateway.call("DELETE", "/v1/memory?user_id=alice")).status == 200
        assert (await said(gateway, mode="read"))["error"] is None


@pytest.mark.parametrize(("status", "refusal"), [(400, True), (404, True), (408, False), (429, False), (500, False)])
def test_only_what_will_be_refused_again_is_a_refusal(status: int, refusal: bool) -> None:
    assert is_refusal(EngineError("x", engine_status=status)) is refusal
