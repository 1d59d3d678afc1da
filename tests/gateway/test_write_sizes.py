"""What is accepted can be stored: a write that the store would refuse for its size is refused at once."""

from collections.abc import AsyncGenerator

import pytest

from gateway.memory.jobs import MemoryJob
from gateway.memory.rounds import adds_of
from gateway.settings import GatewaySettings
from memloop.wire.fields import MAX_WRITE_BYTES, STORE_BODY_BYTES
from memloop.wire.memory import MAX_TEXT_CHARS
from memory_store.settings import Settings
from tests.gateway.running import Gateway, running_gateway

ADD = "/v1/memory/add"
LONG = "\x01" * MAX_TEXT_CHARS
"""Takes six times its length as JSON."""


@pytest.fixture
async def roomy(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway whose limit of JSON is above the limit of a write."""
    async with running_gateway(settings.model_copy(update={"max_json_bytes": settings.max_body_bytes})) as gateway:
        yield gateway


def said(number: int, **fields: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": LONG}] * number, "user_id": "u", **fields}


@pytest.mark.parametrize("path", [ADD, "/v3/memories/add"])
async def test_a_write_that_the_store_cannot_take_is_refused(roomy: Gateway, path: str) -> None:
    answer = await roomy.post(path, said(180))
    assert (answer.status, answer.json["error"]["code"]) == (413, "too_large")
    assert "A write has at most" in answer.json["error"]["message"]
    assert await roomy.queued_turns() == []


async def test_a_chat_whose_turn_is_too_large_is_answered(roomy: Gateway) -> None:
    answer = await roomy.chat(LONG * 180, memory={"user_id": "u"})
    assert answer.status == 200
    assert answer.json["memory"]["write_event_id"] is None
    told = "This turn is longer than a memory write may be; it will not be remembered."
    assert answer.json["memory"]["error"] == told


@pytest.mark.parametrize("part", ["role", "message_id"])
@pytest.mark.parametrize("path", [ADD, "/v3/memories/add"])
async def test_nothing_beside_the_text_of_a_message_is_unbounded(gateway: Gateway, path: str, part: str) -> None:
    message = {"role": "user", "content": "Tea.", part: "x" * 1000}
    answer = await gateway.post(path, {"messages": [message], "user_id": "u"})
    assert answer.status == (200 if path != ADD and part == "message_id" else 422)  # mem0's other fields are left out


async def test_the_largest_write_fits_the_stores_body(roomy: Gateway) -> None:
    answer = await roomy.post(ADD, said(150, metadata={"a": "x" * 60_000}))
    assert answer.status == 202
    [turns] = await roomy.queued_turns()
    job = MemoryJob.model_validate(
        {"event_id": "e", "namespace": {"tenant": "t", "user_id": "u"}, "turns": turns, "created_at": 0}
    )
    bodies = [len(add.model_dump_json()) for add in adds_of(job, token=1)]
    assert max(bodies) < STORE_BODY_BYTES
    assert sum(len(turn.model_dump_json()) for turn in turns) < MAX_WRITE_BYTES


def test_no_store_takes_less() -> None:
    assert Settings().max_body_bytes >= STORE_BODY_BYTES
    with pytest.raises(ValueError, match="max_body_bytes"):
        Settings.model_validate({"max_body_bytes": STORE_BODY_BYTES - 1})
