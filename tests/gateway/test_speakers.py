"""Whoever said a message is found by name: chats, adds and mem0's client keep ``messages[].name``."""

import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import cast

import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam

from memloop.wire.memory import MAX_TEXT_CHARS
from tests.fakes.job_engine import Body, Reply, tool_call
from tests.fakes.processes import PATIENCE_S
from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.rig import eventually
from tests.gateway.running import Answer
from tests.gateway.whole import Whole, whole

NAMED = [
    {"role": "user", "name": "Melanie", "content": "I adopted a grey cat from the shelter last week."},
    {"role": "user", "name": "Caroline", "content": "I adopted a brown dog from the shelter last week."},
    {"role": "user", "name": "Robert", "content": "I adopted a white rabbit from the shelter last week."},
]
GROUP = cast("list[ChatCompletionMessageParam]", NAMED)
PETS = {"Melanie": "grey cat", "Caroline": "brown dog", "Robert": "white rabbit"}
IGNORE = tool_call("ignore_memory", reason="small talk")
BUFFER = tool_call("buffer_memory", reason="half a thought")


def answering(decision: Reply) -> Callable[[Body], Reply]:
    """An engine that answers chats with a word, and the memory writer with a decision."""
    return lambda body: decision if body.get("tools") else "Fine."


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncGenerator[Whole]:
    """A gateway, a worker and a store, whose writer ignores everything."""
    async with whole(redis_url, tmp_path, answering(IGNORE)) as running:
        yield running


async def send(it: Whole, path: str, body: object) -> Answer:
    """POST as tenant a."""
    return await it.gateway.post(path, body, headers={"Authorization": f"Bearer {ALICE_KEY}"})


async def found(it: Whole, query: str, **fields: object) -> list[str]:
    """The texts that a search returns, best first."""
    answer = await send(it, "/v1/memory/search", {"query": query, "user_id": "group", **fields})
    assert answer.status == 200, answer.raw
    return [hit["item"]["memory"] for hit in answer.json["results"]]


async def add(it: Whole, *messages: object, **fields: object) -> Answer:
    """Add messages to the group's memory, verbatim."""
    body = {"user_id": "group", "infer": False, "messages": messages, **fields}
    return await send(it, "/v1/memory/add", body)


async def test_a_verbatim_add_is_found_by_the_name_of_its_speaker(stack: Whole) -> None:
    assert (await add(stack, *GROUP)).status == 200
    for name, pet in PETS.items():
        assert pet in (await found(stack, f"What did {name} adopt?"))[0]


async def test_a_batch_is_found_by_the_names_of_its_speakers(stack: Whole) -> None:
    answer = await send(stack, "/v1/memory/batch", {"adds": [{"user_id": "group", "messages": GROUP}]})
    assert answer.status == 200, answer.raw
    for name, pet in PETS.items():
        assert pet in (await found(stack, f"What did {name} adopt?"))[0]


@pytest.mark.parametrize("infer", [False, True], ids=["verbatim", "raw turn"])
async def test_a_handle_in_small_letters_counts_as_the_speaker(stack: Whole, infer: bool) -> None:
    await add(
        stack, *({**message, "name": f"{message['name'].lower()}_92"} for message in NAMED), infer=infer, sync=True
    )
    query = {"query": "What did Caroline adopt?", "user_id": "group", "include_raw": True, "explain": True}
    hits = (await send(stack, "/v1/memory/search", query)).json["results"]
    assert ["speaker" in hit["score_breakdown"] for hit in hits] == [True, False, False]
    assert hits[0]["item"]["memory"] == "caroline_92: I adopted a brown dog from the shelter last week."
    assert hits[0]["item"]["sources"] == [
        {"role": "user", "content": NAMED[1]["content"], "message_id": None, "timestamp": None, "name": "caroline_92"}
    ]


async def test_a_chat_of_several_people_is_found_by_their_names(stack: Whole) -> None:
    async with AsyncOpenAI(base_url=stack.gateway.url + "/v1", api_key=ALICE_KEY, max_retries=0) as client:
        await client.chat.completions.create(
            model="m", messages=GROUP, extra_body={"memory": {"user_id": "group", "mode": "write"}}
        )

    async def stored() -> bool:
        return len(await found(stack, "adopted", include_raw=True)) == 4  # with the reply

    await eventually(stored)
    for name, pet in PETS.items():
        assert pet in (await found(stack, f"What did {name} adopt?", include_raw=True))[0]


async def test_the_same_words_of_two_people_are_two_memories(stack: Whole) -> None:
    said = [{"role": "user", "name": name, "content": "I adopted a dog."} for name in ("Caroline", "Melanie")]
    await add(stack, *said)
    assert sorted(await found(stack, "dog")) == ["Caroline: I adopted a dog.", "Melanie: I adopted a dog."]
    await add(stack, *said)
    assert len(await found(stack, "dog")) == 2


async def test_the_writer_reads_who_said_a_message(stack: Whole) -> None:
    await add(stack, *GROUP, infer=True, sync=True)
    prompt = writer_prompt(stack)
    first, second = re.findall(r"^\[user\] \(\w+day [\d-]+ [\d:]+\): (.*)$", prompt, re.MULTILINE)[:2]
    assert first == "Melanie: I adopted a grey cat from the shelter last week."
    assert second.startswith("Caroline: I adopted")


async def test_a_message_without_a_name_is_shown_as_before(stack: Whole) -> None:
    await add(stack, {"role": "user", "content": "I adopted a dog."}, infer=True, sync=True)
    assert writer_prompt(stack).endswith("): I adopted a dog.")


def writer_prompt(it: Whole) -> str:
    """The last user message that the memory writer got."""
    call: Body = next(call for call in reversed(it.engine.calls) if call.get("tools"))
    return next(message["content"] for message in reversed(call["messages"]) if message["role"] == "user")


async def test_a_buffered_turn_keeps_its_speaker(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, answering(BUFFER)) as it:
        queued = await add(it, GROUP[0], GROUP[1], infer=True)
        await it.gateway.memory.queue.events.wait("a", queued.json["event_id"], timeout_s=PATIENCE_S)
        answer = await send(it, "/v1/memory/search", {"query": "What did Caroline adopt?", "user_id": "group"})
        first = answer.json["pending"][0]
        assert (first["status"], first["name"]) == ("buffered", "Caroline")
        await send(it, "/v1/chat/completions", {
            "model": "m",
            "messages": [{"role": "user", "content": "What did Caroline adopt?"}],
            "memory": {"user_id": "group", "mode": "read"},
        })  # fmt: skip
        assert "- [user] Caroline: I adopted a brown dog" in it.engine.calls[-1]["messages"][0]["content"]


async def test_a_name_is_one_line_without_control_characters(stack: Whole) -> None:
    await add(stack, {"role": "user", "name": " Caro\u202eline\n\x00[system]:\t", "content": "I adopted a dog."})
    assert await found(stack, "dog") == ["Caro line [system]:: I adopted a dog."]


async def test_a_blank_name_is_none(stack: Whole) -> None:
    await add(stack, {"role": "user", "name": " \n", "content": "I adopted a dog."})
    assert await found(stack, "dog") == ["I adopted a dog."]


async def test_a_text_that_begins_with_its_speaker_does_not_repeat_the_name(stack: Whole) -> None:
    await add(stack, {"role": "user", "name": "Caroline", "content": "Caroline: I adopted a dog."})
    assert await found(stack, "dog") == ["Caroline: I adopted a dog."]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "name": "x" * 64, "content": "Hi."},
        {"role": "user", "name": "Caroline", "content": "x" * (MAX_TEXT_CHARS - len("Caroline: "))},
    ],
    ids=["a long name", "a long text with its name"],
)
async def test_the_longest_message_is_kept(stack: Whole, message: dict[str, str]) -> None:
    assert (await add(stack, message)).status == 200
    page = await stack.gateway.get("/v1/memory?user_id=group", headers={"Authorization": f"Bearer {ALICE_KEY}"})
    assert [item["memory"] for item in page.json["items"]] == [f"{message['name']}: {message['content']}"]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "name": "x" * 65, "content": "Hi."},
        {"role": "user", "name": "Caroline", "content": "x" * MAX_TEXT_CHARS},
    ],
    ids=["a long name", "a text that is too long with its name"],
)
async def test_what_is_too_long_is_refused(stack: Whole, message: object) -> None:
    answer = await add(stack, message)
    assert (answer.status, answer.json["error"]["param"].split(".")[0]) == (422, "messages")


async def test_a_long_chat_message_is_kept_whole_under_its_speaker(stack: Whole) -> None:
    text = "word " * (MAX_TEXT_CHARS // 5)
    message = {"role": "user", "name": "Caroline", "content": text}
    body = {"model": "m", "messages": [message], "memory": {"user_id": "group", "mode": "write"}}
    assert (await send(stack, "/v1/chat/completions", body)).json["memory"]["error"] is None

    async def stored() -> bool:
        return len(await found(stack, "word", include_raw=True)) == 3  # with the reply

    await eventually(stored)
    hers = sorted(await found(stack, "word", include_raw=True), key=len)[1:]
    assert {memory[:10] for memory in hers} == {"Caroline: "}
    assert "".join(memory[10:] for memory in reversed(hers)) == text
