"""A user at a glance, on the real store: facts by category, pinned first, within a budget, and in a chat's prompt."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.fakes.job_engine import Body, Reply
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY
from tests.gateway.running import Answer
from tests.gateway.whole import Whole, whole

ALICE, BOB = {"X-API-Key": ALICE_KEY}, {"X-API-Key": BOB_KEY}


def talk(body: Body) -> Reply:
    del body
    return "Hello."


async def kept(it: Whole, text: str, *tags: str) -> None:
    said: Any = {"messages": [{"role": "user", "content": text}], "user_id": "ada", "infer": False}
    event = await it.gateway.post("/v1/memory/add", said, headers=ALICE)
    assert event.status == 200, event.raw
    if tags:
        item = event.json["memories"][0]["item"]["id"]
        async with it.gateway.http.patch(
            f"{it.gateway.url}/v1/memory/{item}", json={"tags": [*tags]}, headers=ALICE
        ) as edited:
            assert edited.status == 200, await edited.text()


async def profile(it: Whole, query: str = "", headers: dict[str, str] = ALICE) -> Answer:
    answer = await it.gateway.get(f"/v1/memory/profile?user_id=ada{query}", headers=headers)
    assert answer.status == 200, answer.raw
    return answer


def shown(answer: Answer) -> dict[str, list[str]]:
    return {each["name"]: [fact["memory"] for fact in each["facts"]] for each in answer.json["categories"]}


async def test_facts_stand_by_category_with_pinned_ones_first(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, talk) as it:
        await kept(it, "Ada is allergic to nuts.", "health", "pinned")
        await kept(it, "Ada lives in Oslo.")
        await kept(it, "Ada runs every day.", "health")
        found = await profile(it)
        assert shown(found) == {
            "health": ["Ada is allergic to nuts.", "Ada runs every day."],
            "other": ["Ada lives in Oslo."],
        }
        assert [fact["pinned"] for fact in found.json["categories"][0]["facts"]] == [True, False]
        assert shown(await profile(it, headers=BOB)) == {}


async def test_the_budget_goes_to_pinned_facts_first_and_the_rest_is_counted(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, talk) as it:
        await kept(it, "Ada is allergic to nuts.", "pinned")
        for number in range(5):
            await kept(it, f"Ada saw film number {number}.")
        whole_tokens = (await profile(it)).json["tokens"]
        small = await profile(it, f"&max_tokens={whole_tokens // 3}")
        assert "Ada is allergic to nuts." in shown(small)["other"]
        assert small.json["tokens"] <= whole_tokens // 3
        assert small.json["left_out"] + sum(map(len, shown(small).values())) == 6


@pytest.mark.parametrize(
    "fields",
    [{"memory_type": "KeptTurn"}, {"feedback": {"verdict": "wrong", "at": "2026-01-31T00:00:00Z"}}],
    ids=["no-decision", "wrong"],
)
async def test_no_number_of_newer_memories_that_are_no_facts_hides_one(
    redis_url: str, tmp_path: Path, fields: dict[str, Any]
) -> None:
    async with whole(redis_url, tmp_path, talk) as it:
        await kept(it, "Ada lives in Oslo.")
        old = (await it.gateway.get("/v1/memory?user_id=ada", headers=ALICE)).json["data"][0]
        later = (datetime.fromisoformat(old["created_at"]) + timedelta(seconds=1)).isoformat()
        turns = [
            {**old, "id": str(UUID(int=number)), "memory": f"Turn {number}.", "key": f"turn {number}"}
            for number in range(210)
        ]
        lines = [json.dumps({"item": {**turn, **fields, "created_at": later}, "confirmed_at": later}) for turn in turns]
        taken = await it.gateway.post(
            "/v1/memory/import", "\n".join(lines).encode(), headers={**ALICE, "Content-Type": "application/jsonl"}
        )
        assert taken.json["imported"] == 210, taken.raw
        found = await profile(it)
        assert (shown(found), found.json["left_out"]) == ({"other": ["Ada lives in Oslo."]}, 0)


async def test_what_was_called_wrong_is_neither_shown_nor_counted(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, talk) as it:
        await kept(it, "Ada lives in Oslo.")
        item = (await it.gateway.get("/v1/memory?user_id=ada", headers=ALICE)).json["data"][0]["id"]
        await it.gateway.post(f"/v1/memory/{item}/feedback", {"feedback": "wrong"}, headers=ALICE)
        found = await profile(it)
        assert (shown(found), found.json["left_out"]) == ({}, 0)


async def test_facts_without_a_category_are_found_by_the_name_they_are_shown_under(
    redis_url: str, tmp_path: Path
) -> None:
    async with whole(redis_url, tmp_path, talk) as it:
        await kept(it, "Ada lives in Oslo.")
        await kept(it, "Ada likes tea.", "pinned")
        await kept(it, "Ada is allergic to nuts.", "health", "pinned")
        assert shown(await profile(it, "&category=other")) == {"other": ["Ada likes tea.", "Ada lives in Oslo."]}
        search = {"user_id": "ada", "query": "Where does Ada live?", "category": "other"}
        found = (await it.gateway.post("/v1/memory/search", search, headers=ALICE)).json
        assert [hit["memory"] for hit in found["data"]] == ["Ada lives in Oslo."]


async def test_a_write_is_in_the_profile_at_once_and_an_erasure_out_of_it(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, talk) as it:
        assert shown(await profile(it)) == {}
        await kept(it, "Ada lives in Oslo.")
        assert shown(await profile(it)) == {"other": ["Ada lives in Oslo."]}
        async with it.gateway.http.delete(f"{it.gateway.url}/v1/memory?user_id=ada", headers=ALICE) as erased:
            assert erased.status == 200
        assert shown(await profile(it)) == {}


async def test_a_chat_may_ask_for_the_profile_beside_what_its_question_finds(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, talk) as it:
        await kept(it, "Ada is allergic to nuts.", "pinned")
        for number in range(12):
            await kept(it, f"Ada saw film number {number} in Rome.")
        memory = {"user_id": "ada", "mode": "read", "top_k": 1, "profile": True}
        body = {"model": "m", "messages": [{"role": "user", "content": "Film number 3 in Rome?"}], "memory": memory}
        answer = await it.gateway.post("/v1/chat/completions", body, headers=ALICE)
        prompt = str(it.engine.calls[-1]["messages"])
    assert answer.json["memory"]["error"] is None
    assert "1. Ada is allergic to nuts." in prompt
    assert prompt.count("Ada saw film number 3 in Rome.") == 1
