"""``POST /v1/memory/events/{id}/retry``: a user puts a failed write back."""

import asyncio
import hashlib

from tests.fakes.job_engine import Body, Reply, add_memory, last_text, tool_call
from tests.fakes.manners import FACT, told
from tests.gateway.api_rig import api
from tests.gateway.rig import eventually, script

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


async def test_a_write_that_goes_on_under_another_policy_shows_the_writer_every_turn(redis_url: str) -> None:
    facts, shown, down = [f"fact-{number:04}" for number in range(4)], list[list[str]](), asyncio.Event()
    refused = list[Body]()

    def reply(body: Body) -> Reply:
        if down.is_set():
            refused.append(body)
            return 503
        shown.append(FACT.findall(last_text(body)))
        if len(shown) == 1:
            down.set()
        return add_memory(*told(shown[-1]))

    policy, words = "/v1/memory/policy?user_id=alice", "lorem ipsum dolor sit amet " * 34
    lines = [f"Keep whatever the user tells about topic number {number} in full." for number in range(34)]
    rules = "\n".join(lines)[:1990]
    messages = [{"role": "user", "content": f"{fact} {words}"} for fact in facts]
    async with api(redis_url, reply) as it, it.rig.working():
        assert (await it.call("PUT", policy, {"instructions": rules})).status == 200
        event_id = (await it.post("/v1/memory/add", {"messages": messages, "user_id": "alice"})).json["event_id"]
        await eventually(lambda: bool(refused))
        assert (await it.call("PUT", policy, {"instructions": "Be brief."})).status == 200
        before = len(refused)
        await eventually(lambda: len(refused) > before + 1)  # a run that began under the new policy
        down.clear()
        event = await it.rig.event(event_id)
    assert event.status == "completed"
    assert len(shown) > 1
    assert sorted(fact for some in shown for fact in some) == facts
