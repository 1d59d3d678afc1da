"""The memory store is gone and comes back: chats go on without memories and say so; their turns wait to be written."""

from tests.fakes.recall_store import FakeStore, memory
from tests.gateway.rig import eventually
from tests.gateway.running import Gateway

MEMORY = {"user_id": "u1"}
WITHOUT = "The memory store did not respond; this reply was made without memories."


async def test_chats_go_on_without_memories_and_have_them_again_when_the_store_is_back(
    gateway: Gateway, store: FakeStore
) -> None:
    store.finds = [memory("m1", "Alice moved to Oslo.")]
    await store.stop()

    chat = await gateway.chat(memory=MEMORY)
    assert chat.json["choices"][0]["message"]["content"] == "Hello."
    assert (chat.json["memory"]["retrieved"], chat.json["memory"]["error"]) == ([], WITHOUT)
    assert chat.json["memory"]["write_event_id"].startswith("evt_")  # the turn is queued all the same
    stream = await gateway.chat(stream=True, memory=MEMORY)
    assert (stream.status, stream.streamed_text, stream.chunks[-1]["memory"]["error"]) == (200, "Hello.", WITHOUT)
    assert await gateway.metric("memory_recall_failed_total") == 2
    search = await gateway.post("/v1/memory/search", {"query": "x", "user_id": "u1"})
    assert (search.status, search.error["code"]) == (503, "unavailable")
    assert (await gateway.get("/readyz")).json["dependencies"]["store"] != "ok"

    await store.start()

    async def recalled() -> bool:
        return (await gateway.chat(memory=MEMORY)).json["memory"]["retrieved"] == ["m1"]

    await eventually(recalled)
    assert (await gateway.get("/readyz")).json["dependencies"]["store"] == "ok"
