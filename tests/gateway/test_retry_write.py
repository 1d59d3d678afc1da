"""``POST /v1/memory/events/{id}/retry``: a user puts a failed write back."""

import hashlib

from tests.fakes.job_engine import add_memory, tool_call
from tests.gateway.api_rig import api
from tests.gateway.rig import script

LIKES = add_memory("Alice likes tea.")
SAID = {"messages": [{"role": "user", "content": "I like tea."}], "user_id": "alice"}
READER = f"local:{hashlib.sha256(b'reader').hexdigest()} scopes=memory:read"
WRITER = f"local:{hashlib.sha256(b'writer').hexdigest()}"


async def test_a_failed_write_is_put_back_and_goes_on_with_its_decision(redis_url: str) -> None:
    async with api(redis_url, script(LIKES)) as it, it.rig.working():
        it.rig.store.refuse_memories = 422
        event_id = (await it.post("/v1/memory/add", SAID)).json["event_id"]
        assert (await it.rig.event(event_id)).status == "failed"
        it.rig.store.refuse_memories = None
        answer = await it.call("POST", f"/v1/memory/events/{event_id}/retry")
        assert (answer.status, answer.json) == (202, {"event_id": event_id, "status": "queued"})
        event = await it.rig.event(event_id)
    assert (event.status, event.memories[0].item.memory) == ("completed", "Alice likes tea.")


async def test_a_write_that_did_not_fail_is_not_put_back(redis_url: str) -> None:
    async with api(redis_url, script(tool_call("ignore_memory", reason="small talk"))) as it, it.rig.working():
        event_id = (await it.post("/v1/memory/add", SAID)).json["event_id"]
        await it.rig.event(event_id)
        answer = await it.call("POST", f"/v1/memory/events/{event_id}/retry")
        assert (answer.status, answer.error["code"]) == (409, "write_not_failed")
        missing = await it.call("POST", "/v1/memory/events/evt_0/retry")
        assert (missing.status, missing.error["code"]) == (404, "not_found")


async def test_a_key_that_only_reads_cannot_put_a_write_back(redis_url: str) -> None:
    async with api(redis_url, script(LIKES), api_keys=f"{READER},{WRITER}") as it, it.rig.working():
        it.rig.store.refuse_memories = 422
        accepted = await it.call("POST", "/v1/memory/add", SAID, headers={"X-API-Key": "writer"})
        event_id = accepted.json["event_id"]
        assert (await it.rig.event(event_id)).status == "failed"
        answer = await it.call("POST", f"/v1/memory/events/{event_id}/retry", headers={"X-API-Key": "reader"})
        assert (answer.status, answer.error["code"]) == (403, "permission_denied")
