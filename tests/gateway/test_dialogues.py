"""What the gateway sends to its engine, for one scripted dialogue of each loop: see ``tests.dialogues``."""

from typing import Any

import pytest

from memloop.wire.memory import MemoryItem, Namespace
from tests.dialogues.scripted import (
    ANSWER,
    DOCUMENT,
    MEMAGENT,
    MEMREADER,
    MEMREREAD,
    QUESTION,
    STORED,
    TINY,
    TURNS,
    Dialogue,
)
from tests.gateway.api_rig import Api, api
from tests.gateway.rig import script

SERVED: dict[str, Any] = {"profile": "tiny", "tokenizer": TINY / "tokenizer.json"}


@pytest.mark.parametrize("dialogue", [MEMAGENT, MEMREREAD], ids=lambda each: each.loop)
async def test_a_read_shows_the_engine_what_the_rollout_shows_the_policy(redis_url: str, dialogue: Dialogue) -> None:
    read = {"model": "m", "question": QUESTION, "document": {"text": DOCUMENT}, "strategy": dialogue.loop}
    async with api(redis_url, script(*dialogue.replies), **SERVED) as it:
        answer = await it.post("/v1/long-read", read)
    assert (answer.status, answer.json["output_text"]) == (200, ANSWER)
    dialogue.check(_sent(it))


async def test_a_memory_write_shows_the_engine_what_the_rollout_shows_the_policy(redis_url: str) -> None:
    said = [turn.model_dump(mode="json", exclude_none=True) for turn in TURNS]
    async with api(redis_url, script(*MEMREADER.replies), **SERVED) as it, it.rig.working():
        it.rig.store.items["m1"] = (Namespace(tenant="local", user_id="alice"), _stored())
        answer = await it.post("/v1/memory/add", {"messages": said, "user_id": "alice", "sync": True})
    assert answer.json["memories"][0]["item"]["memory"] == "The locker code of the user is 512."
    MEMREADER.check(_sent(it))


def _sent(it: Api) -> list[dict[str, object]]:
    return [{"messages": body["messages"], "tools": body.get("tools", [])} for body in it.rig.engine.calls]


def _stored() -> MemoryItem:
    (held,) = STORED
    return MemoryItem(
        id=held.id,
        memory=held.text,
        key="locker code",
        memory_type="UserMemory",
        user_id="alice",
        valid_from=held.valid_from,
        created_at=held.valid_from,
        updated_at=held.valid_from,
        hash="0",
    )
