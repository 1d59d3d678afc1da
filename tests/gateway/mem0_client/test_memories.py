"""What the drop-in makes of a mem0 client's calls, beyond that they answer."""

from pathlib import Path
from typing import Any

import pytest
from mem0.client.types import AddMemoryOptions, DeleteAllMemoryOptions, UpdateMemoryOptions  # pyright: ignore[reportMissingTypeStubs]
from mem0.exceptions import MemoryError as Mem0Error  # pyright: ignore[reportMissingTypeStubs]
from mem0.exceptions import MemoryNotFoundError, ValidationError  # pyright: ignore[reportMissingTypeStubs]

from tests.fakes.job_engine import Body, Reply, last_text, tool_call
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY
from tests.gateway.mem0_client.drop_in import Client, DropIn, drop_in, remember
from tests.gateway.whole import whole

NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
async def client(it: DropIn) -> Client:
    return await it.alice("async")


async def refusal(client: Client, method: str, *args: Any, **kwargs: Any) -> Mem0Error:
    """The error that a call ends with."""
    with pytest.raises(Mem0Error) as caught:
        await client.call(method, *args, **kwargs)
    return caught.value


async def test_an_add_is_queued_and_the_memory_writer_decides(it: DropIn, client: Client) -> None:
    answer = await client.call("add", "I like green tea.", user_id="ann", metadata={"app": "x"})
    assert answer["status"] == "PENDING"
    event = await it.event(answer["event_id"])
    (kept,) = event["results"]
    assert (event["status"], kept["memory"], kept["event"]) == ("SUCCEEDED", "Ann drinks green tea.", "ADD")
    page = await client.call("get_all", filters={"user_id": "ann"})
    assert [(one["id"], one["metadata"]) for one in page["results"]] == [(kept["id"], {"app": "x"})]


def waiting(body: Body) -> Reply:
    """A memory writer that waits for more."""
    assert last_text(body)
    return tool_call("buffer_memory", reason="half a thought")


async def test_a_search_lists_the_turns_that_are_not_decided_yet(redis_url: str, tmp_path: Path) -> None:
    async with drop_in(redis_url, tmp_path, waiting) as it:
        client = await it.alice("async")
        for user, text in (("eve", "My passport is in the blue box."), ("bob", "My passport is lost.")):
            await it.event((await client.call("add", text, user_id=user, agent_id="home"))["event_id"])
        eve: dict[str, Any] = {"user_id": "eve"}
        exact = [eve, {"AND": [eve]}, {"AND": [eve, {"agent_id": "home"}]}, {**eve, "agent_id": "away"}]
        found = [await client.call("search", "passport", filters=filters) for filters in exact]
        others = [{"user_id": "*"}, {"agent_id": "home"}, {"OR": [eve, {"user_id": "bob"}]}, {**eve, "a": 1}]
        unread = [await client.call("search", "passport", filters=filters) for filters in others]
    texts = [[turn["content"] for turn in answer["pending"]] for answer in found]
    assert texts == [["My passport is in the blue box."]] * 3 + [[]]
    assert [answer["pending_complete"] for answer in found] == [True] * 4
    assert [(answer["pending"], answer["pending_complete"]) for answer in unread] == [([], False)] * 4


async def test_an_add_that_asks_to_wait_answers_its_results(client: Client) -> None:
    answer = await client.call("add", "I like green tea.", user_id="ann", async_mode=False)
    assert [one["memory"] for one in answer["results"]] == ["Ann drinks green tea."]


async def test_messages_come_in_every_form_of_the_clients(client: Client) -> None:
    forms: list[tuple[object, str]] = [
        ("Tea.", "Tea."),
        ({"role": "user", "content": "Tea.", "name": "ann"}, "ann: Tea."),
        ([{"role": "user", "content": [{"type": "text", "text": "Tea."}]}], "Tea."),
    ]
    for messages, memory in forms:
        answer = await client.call("add", messages, user_id="ann", infer=False)
        assert [one["memory"] for one in answer["results"]] == [memory]


async def test_ids_may_stand_in_filters_and_come_back_with_the_memory(client: Client) -> None:
    ids = {"user_id": "ann", "agent_id": "home", "run_id": "r1"}
    options = AddMemoryOptions(filters=ids, infer=False, expiration_date="2999-01-31", timestamp=1_700_000_000)
    answer = await client.call("add", "Tea.", options)
    memory = await client.call("get", answer["results"][0]["id"])
    assert {name: memory[name] for name in ids} == ids
    assert (memory["expiration_date"], memory["app_id"]) == ("2999-01-31", None)
    before = await client.listed(AND=[{"user_id": "ann"}, {"timestamp": {"lte": 1_700_000_001}}])
    assert (before, await client.listed(user_id="ann", timestamp={"lt": 1_700_000_000})) == (["Tea."], [])


async def test_a_memory_was_created_at_its_timestamp_and_a_date_is_its_whole_day(client: Client) -> None:
    await client.added("Tea.", timestamp=1_700_000_000)  # 2023-11-14 22:13:20
    listed = await client.call("get_all", filters={"user_id": "ann"})
    assert listed["results"][0]["created_at"].startswith("2023-11-14T22:13:20")
    bounds = {"lte": ["Tea."], "gte": ["Tea."], "lt": [], "gt": []}
    found = {name: await client.listed(user_id="ann", created_at={name: "2023-11-14"}) for name in bounds}
    assert found == bounds


async def test_a_memory_past_its_expiration_date_is_gone(client: Client) -> None:
    await client.added("Tea.", expiration_date="2020-01-01")
    assert await client.listed(user_id="ann") == []


FILTERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a user": ({"user_id": "ann"}, ["Ann at home.", "Ann at work.", "Ann."]),
    "a user's agent": ({"user_id": "ann", "agent_id": "home"}, ["Ann at home."]),
    "an agent of anybody": ({"agent_id": "work"}, ["Ann at work.", "Bob at work."]),
    "any user": ({"user_id": "*"}, ["Ann at home.", "Ann at work.", "Ann.", "Bob at work."]),
    "any agent": (
        {"AND": [{"user_id": "ann"}, {"agent_id": "*"}]},
        ["Ann at home.", "Ann at work."],
    ),
    "one or the other": (
        {"OR": [{"user_id": "bob"}, {"AND": [{"user_id": "ann"}, {"agent_id": "home"}]}]},
        ["Ann at home.", "Bob at work."],
    ),
    "several users": ({"user_id": {"in": ["ann", "bob"]}, "agent_id": "work"}, ["Ann at work.", "Bob at work."]),
    "not an agent": ({"AND": [{"user_id": "ann"}, {"NOT": [{"agent_id": "home"}]}]}, ["Ann at work.", "Ann."]),
    "another agent": ({"user_id": "ann", "agent_id": {"ne": "home"}}, ["Ann at work.", "Ann."]),
    "none of these": ({"user_id": "ann", "agent_id": {"nin": ["home", "work"]}}, ["Ann."]),
    "metadata": ({"user_id": "ann", "metadata": {"rank": 2}}, ["Ann at work."]),
    "metadata in a range": ({"user_id": "ann", "metadata": {"rank": {"gt": 1, "lte": 3}}}, ["Ann at work."]),
    "words": ({"user_id": "*", "keywords": {"contains": "work"}}, ["Ann at work.", "Bob at work."]),
    "time": (
        {"user_id": "ann", "created_at": {"gte": "2020-01-01", "lt": "2999-01-01T00:00:00Z"}, "rank": 1},
        ["Ann."],
    ),
    "no match": ({"user_id": "ann", "created_at": {"lt": "2020-01-01"}}, []),
}


async def test_the_filter_grammar(client: Client) -> None:
    await client.added("Ann.", metadata={"rank": 1})
    await client.added("Ann at work.", agent_id="work", metadata={"rank": 2})
    await client.added("Ann at home.", agent_id="home")
    await client.added("Bob at work.", user_id="bob", agent_id="work")
    listed = {name: sorted(await client.listed(**filters)) for name, (filters, _) in FILTERS.items()}
    assert listed == {name: texts for name, (_, texts) in FILTERS.items()}
    for name, (filters, texts) in FILTERS.items():
        found = (await client.call("search", "Ann at work", filters=filters))["results"]
        assert (name, sorted(one["memory"] for one in found)) == (name, texts)


async def test_options_of_a_search(client: Client) -> None:
    for number in range(3):
        await client.added(f"Tea number {number}.", metadata={"rank": number})
    of_ann = {"user_id": "ann"}
    few = await client.call("search", "tea", filters=of_ann, top_k=2, rerank=True, keyword_search=True)
    assert len(few["results"]) == 2
    ranked = await client.call("search", "tea", filters=of_ann, metadata={"rank": 1}, fields=["memory"])
    assert [set(one) for one in ranked["results"]] == [{"id", "memory"}]
    assert (await client.call("search", "tea", filters=of_ann, threshold=5.0))["results"] == []


async def test_an_update_is_a_step_in_the_history(client: Client) -> None:
    item_id = await client.added("Tea at five.", metadata={"n": 1}, expiration_date="2999-01-31")
    await client.call("update", item_id, UpdateMemoryOptions(text="Tea at six."))
    cleared = await client.call("update", item_id, expiration_date=None)
    assert (cleared["memory"], cleared["expiration_date"], cleared["metadata"]) == ("Tea at six.", None, {"n": 1})
    await client.call("delete", item_id)
    steps = await client.call("history", item_id)
    assert [(step["event"], step["old_memory"], step["new_memory"]) for step in steps] == [
        ("ADD", None, "Tea at five."),
        ("UPDATE", "Tea at five.", "Tea at six."),
        ("UPDATE", "Tea at six.", "Tea at six."),
        ("DELETE", "Tea at six.", None),
    ]
    assert steps[0]["input"] == [{"role": "user", "content": "Tea at five."}]


@pytest.mark.parametrize(("linked", "left"), [(False, 1), (True, 0)])
async def test_deleting_with_what_it_superseded(client: Client, linked: bool, left: int) -> None:
    item_id = await client.added("Tea at five.")
    await client.call("update", item_id, text="Tea at six.")
    await client.call("delete", item_id, delete_linked=linked)
    page = await client.call("get_all", filters={"user_id": "ann"}, latest_only=False)
    assert page["count"] == left


async def test_a_batch_with_an_unknown_memory_changes_nothing(client: Client) -> None:
    item_id = await client.added("Tea.")
    edits = [{"memory_id": item_id, "text": "Milk."}, {"memory_id": NOBODY, "text": "Milk."}]
    assert isinstance(await refusal(client, "batch_update", edits), MemoryNotFoundError)
    assert isinstance(await refusal(client, "batch_delete", edits[1:] + edits[:1]), ValidationError)
    ids = [{"memory_id": one["memory_id"]} for one in edits]
    assert isinstance(await refusal(client, "batch_delete", ids), MemoryNotFoundError)
    assert await client.listed(user_id="ann") == ["Tea."]


async def test_a_batch_with_a_superseded_memory_changes_nothing(client: Client) -> None:
    item_id = await client.added("Tea at five.")
    live = [await client.added(f"Cat number {number}.") for number in range(8)]
    await client.call("update", item_id, text="Tea at six.")
    page = await client.call("get_all", filters={"user_id": "ann"}, latest_only=False)
    (former,) = [one["id"] for one in page["results"] if one["memory"] == "Tea at five."]
    edits = [{"memory_id": one, "text": "Milk."} for one in (*live, former)]
    await refusal(client, "batch_update", edits)
    assert "Milk." not in await client.listed(user_id="ann")


async def test_deleting_all_takes_exactly_whom_it_names(client: Client) -> None:
    for user, agent in (("ann", "home"), ("ann", "work"), ("bob", "work"), ("cem", "home")):
        await client.added(f"{user} {agent}", user_id=user, agent_id=agent)
    assert isinstance(await refusal(client, "delete_all"), ValidationError)
    await client.call("delete_all", user_id="ann", agent_id="home")
    assert sorted(await client.listed(user_id="*")) == ["ann work", "bob work", "cem home"]
    await client.call("delete_users", agent_id="work")
    assert await client.listed(user_id="*") == ["cem home"]
    await client.added("ann again")
    await client.call("delete_all", DeleteAllMemoryOptions(filters={"user_id": "ann"}))
    assert await client.listed(user_id="*") == ["cem home"]
    await client.call("delete_all", user_id="*")
    assert (await client.call("users"))["results"] == []


async def test_deleting_a_user_takes_writes_that_still_wait_too(it: DropIn, client: Client) -> None:
    answer = await client.call("add", "I like green tea.", user_id="a/b")
    await client.call("delete_users", user_id="a/b")
    gone = await it.gateway.get(f"/v1/event/{answer['event_id']}", headers={"X-API-Key": "alice-key"})
    assert (gone.status, await client.listed(user_id="a/b")) == (404, [])


@pytest.mark.parametrize("whose", [{"user_id": "*"}, {"agent_id": "home"}])
async def test_deleting_all_takes_the_waiting_writes_of_users_without_memories(
    redis_url: str, tmp_path: Path, whose: dict[str, str]
) -> None:
    async with whole(redis_url, tmp_path, remember, hang_at=1, worker_concurrency=1) as it:
        client, bob = await DropIn(it.gateway).alice("async"), await DropIn(it.gateway).bob("async")
        await client.call("add", "I keep the only worker busy.", user_id="zed", agent_id="work")
        await it.engine.hanging.wait()
        waiting = await client.call("add", "I like green tea.", user_id="ann", agent_id="home")
        other = await bob.call("add", "I like black tea.", user_id="ann", agent_id="home")
        await client.call("delete_all", **whose)
        keys = {"X-API-Key": ALICE_KEY}, {"X-API-Key": BOB_KEY}
        events = (waiting["event_id"], other["event_id"])
        left = [await it.gateway.get(f"/v1/event/{id_}", headers=key) for id_, key in zip(events, keys, strict=True)]
    assert [one.status for one in left] == [404, 200]


REFUSED: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "nobody to remember for": ("add", ("Tea.",), {}, "HTTP_422"),
    "an agent without a user": ("add", ("Tea.",), {"agent_id": "home"}, "HTTP_501"),
    "an app": ("add", ("Tea.",), {"user_id": "ann", "app_id": "x"}, "HTTP_501"),
    "nothing said": ("add", (" ",), {"user_id": "ann"}, "HTTP_422"),
    "two users": ("add", ("Tea.",), {"user_id": "ann", "filters": {"user_id": "bob"}}, "HTTP_422"),
    "instructions": ("add", ("Tea.",), {"user_id": "ann", "custom_instructions": "Be brief."}, "HTTP_501"),
    "an unknown option": ("add", ("Tea.",), {"user_id": "ann", "colour": "red"}, "HTTP_400"),
    "a picture": ("add", ([{"role": "user", "content": [{"type": "image_url"}]}],), {"user_id": "ann"}, "HTTP_501"),
    "a day after the calendar": ("add", ("Tea.",), {"user_id": "ann", "expiration_date": "9999-12-30"}, "HTTP_422"),
    "a time before the calendar": ("add", ("Tea.",), {"user_id": "ann", "timestamp": -60_000_000_000}, "HTTP_422"),
    "a strange date": ("add", ("Tea.",), {"user_id": "ann", "expiration_date": "soon"}, "HTTP_422"),
    "a strange time": ("add", ("Tea.",), {"user_id": "ann", "timestamp": 1e300}, "HTTP_422"),
    "a search of nobody": ("search", ("tea",), {}, "HTTP_422"),
    "a search of no entity": ("search", ("tea",), {"filters": {"rank": 1}}, "HTTP_422"),
    "a search in an app": ("search", ("tea",), {"filters": {"OR": [{"app_id": "x"}, {"user_id": "a"}]}}, "HTTP_501"),
    "an operator not served": (
        "search",
        ("tea",),
        {"filters": {"user_id": "ann", "keywords": {"icontains": "x"}}},
        "HTTP_501",
    ),
    "an unknown operator": ("get_all", (), {"filters": {"user_id": {"like": "x"}}}, "HTTP_422"),
    "expired memories": ("get_all", (), {"filters": {"user_id": "ann"}, "show_expired": True}, "HTTP_501"),
    "a page beyond reach": ("get_all", (), {"filters": {"user_id": "ann"}, "page": 10**6}, "HTTP_422"),
    "a page of no number": ("get_all", (), {"filters": {"user_id": "ann"}, "page": "x"}, "HTTP_422"),
    "an unknown memory": ("get", (NOBODY,), {}, "HTTP_404"),
    "a strange id": ("get", ("no-uuid",), {}, "HTTP_404"),
    "another time": ("update", (NOBODY,), {"timestamp": 1}, "HTTP_501"),
    "all of an app": ("delete_all", (), {"app_id": "x"}, "HTTP_501"),
    "all of any agent": ("delete_all", (), {"agent_id": "*"}, "HTTP_501"),
    "all of a condition": ("delete_all", (), {"filters": {"user_id": {"ne": "ann"}}}, "HTTP_422"),
    "all of a program": ("delete_all", (), {"filters": "__import__('os')"}, "HTTP_422"),
    "an app's entity": ("delete_users", (), {"app_id": "x"}, "HTTP_501"),
}


async def test_what_cannot_be_done_is_refused_with_its_reason(client: Client) -> None:
    for name, (method, args, kwargs, code) in REFUSED.items():
        error = await refusal(client, method, *args, **kwargs)
        assert (name, error.error_code) == (name, code)
        assert error.message == error.details["error"]["message"], name
    assert await client.listed(user_id="*") == []


async def test_a_wrong_key_fails_when_the_client_is_created(it: DropIn) -> None:
    with pytest.raises(ValueError, match="Invalid API key"):
        await it.client("sync", "wrong")


async def test_a_very_negative_memory_is_found_no_more_until_its_feedback_is_withdrawn(client: Client) -> None:
    answer = await client.call("add", "Ann drinks tea.", user_id="ann", infer=False)
    memory_id = answer["results"][0]["id"]

    given = await client.call("feedback", memory_id, feedback="very_negative", feedback_reason="never did")

    assert given == {"id": memory_id, "feedback": "VERY_NEGATIVE", "feedback_reason": "never did"}
    assert (await client.call("search", "tea", filters={"user_id": "ann"}))["results"] == []
    await client.call("feedback", memory_id)
    assert len((await client.call("search", "tea", filters={"user_id": "ann"}))["results"]) == 1
