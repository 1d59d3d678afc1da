"""``/v1/admin/queues`` and ``/v1/admin/dead-letters``."""

import hashlib

from tests.fakes.job_engine import add_memory, tool_call
from tests.fakes.processes import PATIENCE_S
from tests.gateway.api_rig import ALICE_KEY, OPERATED, OPERATOR_KEY, Api, api
from tests.gateway.rig import script
from tests.gateway.running import Answer

LIKES = add_memory("Alice likes tea.")
SAID = {"messages": [{"role": "user", "content": "I like tea."}], "user_id": "alice"}
OPERATOR = {"Authorization": f"Bearer {OPERATOR_KEY}"}
ALICE = {"Authorization": f"Bearer {ALICE_KEY}"}


async def failed_write(it: Api) -> str:
    it.rig.store.refuse_memories = 422
    event_id = (await it.call("POST", "/v1/memory/add", SAID, headers=ALICE)).json["event_id"]
    assert await status(it, event_id) == "failed"
    it.rig.store.refuse_memories = None
    return event_id


async def status(it: Api, event_id: str) -> str:
    return (await it.rig.writes.events.wait("a", event_id, timeout_s=PATIENCE_S)).status


async def letters(it: Api, query: str = "?tenant=a") -> Answer:
    return await it.call("GET", f"/v1/admin/dead-letters{query}", headers=OPERATOR)


async def requeued(it: Api, job_id: str, headers: dict[str, str] = OPERATOR) -> Answer:
    return await it.call("POST", f"/v1/admin/dead-letters/{job_id}/requeue", headers=headers)


async def test_a_failed_write_is_listed_for_its_tenant_and_put_back(redis_url: str) -> None:
    async with api(redis_url, script(LIKES), api_keys=OPERATED) as it, it.rig.working():
        event_id = await failed_write(it)
        (letter,) = (await letters(it)).json["data"]
        assert (letter["job_id"], letter["tenant"], letter["user_id"]) == (event_id, "a", "alice")
        assert letter["can_requeue"]
        assert letter["error"]
        assert (await letters(it, "?tenant=b")).json["data"] == []
        assert (await requeued(it, event_id)).json == {"job_id": event_id, "status": "queued"}
        assert await status(it, event_id) == "completed"
        assert (await letters(it)).json["data"] == []


async def test_pages_of_dead_letters_follow_each_other(redis_url: str) -> None:
    async with api(redis_url, script(LIKES), api_keys=OPERATED) as it, it.rig.working():
        made = {await failed_write(it) for _ in range(3)}
        found: list[str] = []
        cursor = ""
        for _ in range(3):
            page = (await letters(it, f"?tenant=a&limit=1{cursor}")).json
            found += [letter["job_id"] for letter in page["data"]]
            cursor = f"&cursor={page['next_cursor']}"
        last = (await letters(it, f"?tenant=a&limit=1{cursor}")).json
    assert (set(found), len(found)) == (made, 3)
    assert (last["data"], last["next_cursor"]) == ([], None)


async def test_a_write_that_did_not_fail_and_a_job_that_is_not_there_are_not_put_back(redis_url: str) -> None:
    ignored = script(tool_call("ignore_memory", reason="small talk"))
    async with api(redis_url, ignored, api_keys=OPERATED) as it, it.rig.working():
        event_id = (await it.call("POST", "/v1/memory/add", SAID, headers=ALICE)).json["event_id"]
        assert await status(it, event_id) == "completed"
        answers = [await requeued(it, job_id) for job_id in (event_id, "evt_0", "lr_0", "file-0")]
    assert [(answer.status, answer.error["code"]) for answer in answers] == [
        (409, "write_not_failed"),
        *[(404, "not_found")] * 3,
    ]


async def test_only_an_operator_sees_the_queues_of_all_tenants(redis_url: str) -> None:
    keys = f"{OPERATED},b:{hashlib.sha256(b'b-chat').hexdigest()} scopes=chat"
    async with api(redis_url, script("Yes."), api_keys=keys) as it:
        await it.call("POST", "/v1/memory/add", SAID, headers=ALICE)
        found = (await it.call("GET", "/v1/admin/queues", headers=OPERATOR)).json["data"]
        made = await it.call("POST", "/v1/admin/keys", {"name": "n", "scopes": ["admin"]}, headers=OPERATOR)
        tenants_own = {"Authorization": f"Bearer {made.json['secret']}"}
        refused = await it.call("GET", "/v1/admin/queues", headers=tenants_own)
        unscoped = await it.call("GET", "/v1/admin/queues", headers={"Authorization": "Bearer b-chat"})
    others = dict.fromkeys(("reads", "files", "webhooks", "responses", "vector-stores"), 0)
    assert {queue["queue"]: queue["jobs"] for queue in found} == {"memory": 1, **others}
    assert (refused.status, unscoped.status) == (403, 403)


async def test_without_configured_keys_the_local_user_sees_the_queues(redis_url: str) -> None:
    async with api(redis_url, script("Yes.")) as it:
        answer = await it.get("/v1/admin/queues")
    assert (answer.status, len(answer.json["data"])) == (200, 6)


async def test_a_tenants_admin_neither_lists_nor_puts_back_anothers_dead_letters(redis_url: str) -> None:
    async with api(redis_url, script(LIKES), api_keys=OPERATED) as it, it.rig.working():
        event_id = await failed_write(it)
        body = {"name": "b's admin", "scopes": ["admin"], "tenant": "b"}
        made = await it.call("POST", "/v1/admin/keys", body, headers=OPERATOR)
        own = {"Authorization": f"Bearer {made.json['secret']}"}
        assert (await it.call("GET", "/v1/admin/dead-letters", headers=own)).json["data"] == []
        assert (await it.call("GET", "/v1/admin/dead-letters?tenant=a", headers=own)).status == 403
        assert (await requeued(it, event_id, own)).status == 404
