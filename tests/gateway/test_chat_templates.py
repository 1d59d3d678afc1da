"""Chats with memory on engines whose chat templates take few roles: none is refused, and nothing of it is lost."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.fakes.manners import Messages, in_turns, one_system, pairs_calls, without_system, without_tools
from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import MODEL, FakeEngine, Refuses
from tests.gateway.running import CHAT, Gateway

READ = {"user_id": "u1", "mode": "read"}
CALL = {"id": "call00001", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


TEMPLATES: Sequence[Callable[[Messages], None]] = (in_turns, without_system, without_tools, one_system)
CHATS: Mapping[str, list[dict[str, Any]]] = {
    "plain": [{"role": "user", "content": "alpha"}],
    "system": [{"role": "system", "content": "alpha"}, {"role": "user", "content": "beta"}],
    "developer": [{"role": "developer", "content": "alpha"}, {"role": "user", "content": "beta"}],
    "assistant first": [{"role": "assistant", "content": "alpha"}, {"role": "user", "content": "beta"}],
    "user twice": [{"role": "user", "content": "alpha"}, {"role": "user", "content": "beta"}],
    "image": [
        {"role": "user", "content": "alpha"},
        {"role": "user", "content": [{"type": "text", "text": "b"}, IMAGE]},
    ],
    "tool loop": [
        {"role": "system", "content": "alpha"},
        {"role": "user", "content": "beta"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call00001", "content": "gamma"},
    ],
    "system in the middle": [
        {"role": "user", "content": "alpha"},
        {"role": "assistant", "content": "beta"},
        {"role": "system", "content": "gamma"},
        {"role": "user", "content": "delta"},
    ],
}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.__name__)
@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_chat_with_a_recalled_memory_is_answered(
    gateway: Gateway,
    engine: FakeEngine,
    store: FakeStore,
    template: Callable[[Messages], None],
    chat: str,
    stream: bool,
) -> None:
    engine.template = template
    store.finds = [memory("m1", "The user likes tea.")]
    answer = await gateway.post(
        CHAT, {"model": MODEL, "messages": CHATS[chat], "memory": READ, **({"stream": True} if stream else {})}
    )
    assert answer.status == 200, answer.raw
    sent = str(engine.last.json["messages"])
    assert "The user likes tea." in sent
    for message in CHATS[chat]:
        assert not isinstance(message["content"], str) or message["content"] in sent


async def test_what_a_refusal_has_shown_holds_for_the_next_chat(gateway: Gateway, engine: FakeEngine) -> None:
    engine.template = in_turns
    for _ in range(2):
        assert (await gateway.post(CHAT, {"model": MODEL, "messages": CHATS["user twice"]})).status == 200
    assert [len(request.json["messages"]) for request in engine.received] == [2, 1, 1]


async def test_a_chat_in_roles_that_suit_goes_byte_for_byte(gateway: Gateway, engine: FakeEngine) -> None:
    engine.template = in_turns
    body = {"model": MODEL, "messages": CHATS["system"]}
    await gateway.post(CHAT, body)
    assert engine.last.json == body


async def test_another_refusal_that_names_a_role_reaches_the_client(gateway: Gateway, engine: FakeEngine) -> None:
    refusal = Refuses(400, {"error": {"message": "the role of this key may not use the model", "code": "x"}})
    engine.will(*[refusal] * 5)
    answer = await gateway.post(CHAT, {"model": MODEL, "messages": CHATS["tool loop"]})
    assert (answer.status, answer.json["error"]["message"]) == (400, "the role of this key may not use the model")


async def test_messages_api_reaches_a_template_without_tools(gateway: Gateway, engine: FakeEngine) -> None:
    engine.template = without_tools
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "alpha"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call00001", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call00001", "content": "beta"}]},
    ]
    body: dict[str, Any] = {"model": MODEL, "max_tokens": 9, "system": "gamma", "messages": messages}
    answer = await gateway.post("/v1/messages", body)
    assert answer.status == 200, answer.raw
    assert [message["role"] for message in engine.last.json["messages"]] == ["user", "assistant", "user"]


async def test_responses_reach_a_template_without_a_system_message(gateway: Gateway, engine: FakeEngine) -> None:
    engine.template = without_system
    body = {"model": MODEL, "instructions": "alpha", "input": "beta", "store": False}
    answer = await gateway.post("/v1/responses", body)
    assert answer.status == 200, answer.raw
    assert engine.last.json["messages"] == [{"role": "user", "content": "alpha\n\nbeta"}]


ORPHANS: Mapping[str, list[dict[str, Any]]] = {
    "a result without its call": [*CHATS["plain"], {"role": "tool", "tool_call_id": "zz", "content": "gamma"}],
    "a call without its result": [*CHATS["plain"], {"role": "assistant", "content": "", "tool_calls": [CALL]}],
}


@pytest.mark.parametrize("orphan", ORPHANS)
async def test_a_chat_with_unpaired_calls_changes_no_later_chat(
    gateway: Gateway, engine: FakeEngine, orphan: str
) -> None:
    engine.template = pairs_calls
    await gateway.post(CHAT, {"model": MODEL, "messages": ORPHANS[orphan]})
    assert (await gateway.post(CHAT, {"model": MODEL, "messages": CHATS["tool loop"]})).status == 200
    assert engine.received[-1].json["messages"] == CHATS["tool loop"]
