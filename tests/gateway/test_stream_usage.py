"""A stream's tokens are counted whether or not its client asks for them; one that does not ask sees no difference."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.fakes.streaming_engine import MODEL, USAGE, FakeEngine, Refuses, Says, SendsBytes
from tests.gateway.running import Gateway, question

MEMORY = {"user_id": "u1"}
TOKENS = f'gen_ai_client_token_usage_sum{{model="{MODEL}",operation="%s",type="input"}}'
EVENTS = "text/event-stream"
REFUSAL: Any = {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs"}]}


def openai_stream(*pieces: str, reports: bool = True) -> SendsBytes:
    """A stream as OpenAI's reference has it: every chunk has a usage, which is null before the last."""
    head: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    choices: list[Any] = [{"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in pieces]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    chunks = [{**head, "choices": [choice], "usage": None} for choice in choices]
    chunks += [{**head, "choices": [], "usage": USAGE}] if reports else []
    events = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return SendsBytes([*events, b"data: [DONE]\n\n"], EVENTS)


def usages(chunks: Sequence[Any]) -> list[Any]:
    return [chunk["usage"] for chunk in chunks if chunk.get("usage")]


@pytest.mark.parametrize("memory", [None, MEMORY], ids=["no memory", "memory"])
@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": False}}], ids=["absent", "false"])
async def test_a_client_that_does_not_ask_gets_no_usage_and_is_counted(
    gateway: Gateway, engine: FakeEngine, memory: Any, options: Any
) -> None:
    engine.will(openai_stream("Hel", 'lo: "usage":{"x":1}'))
    asked = options if memory is None else {**options, "memory": memory}
    answer = await gateway.chat(stream=True, **asked)
    assert engine.last.json["stream_options"] == {"include_usage": True}
    assert answer.streamed_text == 'Hello: "usage":{"x":1}'
    assert (usages(answer.chunks), answer.events[-1]) == ([], b"data: [DONE]")
    assert [chunk for chunk in answer.chunks if not chunk["choices"] and "memory" not in chunk] == []
    await gateway.until_metric(TOKENS % "chat", USAGE["prompt_tokens"])


@pytest.mark.parametrize("memory", [None, MEMORY], ids=["no memory", "memory"])
async def test_a_client_that_asks_gets_the_usage_and_is_counted(
    gateway: Gateway, engine: FakeEngine, memory: Any
) -> None:
    engine.will(openai_stream("Hello."))
    asked: Any = {"stream_options": {"include_usage": True, "include_obfuscation": False}}
    answer = await gateway.chat(stream=True, **asked, **({} if memory is None else {"memory": memory}))
    assert engine.last.json["stream_options"] == asked["stream_options"]
    assert usages(answer.chunks) == [USAGE]
    await gateway.until_metric(TOKENS % "chat", USAGE["prompt_tokens"])


async def test_texts_that_arrive_with_the_end_are_passed_on_as_they_came(gateway: Gateway, engine: FakeEngine) -> None:
    whole = b"".join(openai_stream("Hel", "lo: error: [DONE]").pieces)
    engine.will(SendsBytes([whole], EVENTS))
    answer = await gateway.chat(stream=True, stream_options={"include_usage": True})
    assert answer.raw == whole
    await gateway.until_metric(TOKENS % "chat", USAGE["prompt_tokens"])


async def test_a_usage_beside_a_text_counts_where_the_end_has_none(gateway: Gateway, engine: FakeEngine) -> None:
    first, *others = openai_stream("Hello.", reports=False).pieces
    reports = first.replace(b'"usage": null', b'"usage": ' + json.dumps(USAGE).encode())
    engine.will(SendsBytes([b"".join((reports, *others))], EVENTS))
    answer = await gateway.chat(stream=True, stream_options={"include_usage": True})
    assert answer.streamed_text == "Hello."
    await gateway.until_metric(TOKENS % "chat", USAGE["prompt_tokens"])


async def test_other_options_of_the_stream_reach_the_engine(gateway: Gateway, engine: FakeEngine) -> None:
    await gateway.chat(stream=True, stream_options={"include_obfuscation": False})
    assert engine.last.json["stream_options"] == {"include_obfuscation": False, "include_usage": True}


async def test_a_whole_answer_reaches_the_engine_as_it_was_sent(gateway: Gateway, engine: FakeEngine) -> None:
    await gateway.chat()
    assert engine.last.json == question()


async def test_streams_of_messages_responses_and_completions_are_counted(gateway: Gateway, engine: FakeEngine) -> None:
    ask: Any = {"model": MODEL, "stream": True}
    await gateway.post("/v1/messages", {**ask, "max_tokens": 9, "messages": question()["messages"]})
    await gateway.until_metric(TOKENS % "chat", 7)
    await gateway.post("/v1/responses", {**ask, "input": "Hi.", "store": False})
    await gateway.until_metric(TOKENS % "responses", 7)
    engine.will(openai_stream("Hello."))
    answer = await gateway.post("/v1/completions", {**ask, "prompt": "Hi."})
    assert b'"usage": {' not in answer.raw
    await gateway.until_metric(TOKENS % "completions", 7)


async def test_an_engine_that_refuses_the_question_is_asked_without_it_from_then_on(
    gateway: Gateway, engine: FakeEngine
) -> None:
    engine.will(Refuses(422, REFUSAL), Says("Hello."), Says("Again."))
    assert (await gateway.chat(stream=True)).streamed_text == "Hello."
    assert (await gateway.chat(stream=True)).streamed_text == "Again."
    assert ["stream_options" in each.json for each in engine.received] == [True, False, False]


async def test_a_refusal_of_the_clients_own_request_is_its_answer(gateway: Gateway, engine: FakeEngine) -> None:
    wrong = Refuses(400, {"error": {"message": "No such role.", "type": "invalid_request_error"}})
    engine.will(wrong, wrong, Says(), wrong)
    assert ((await gateway.chat(stream=True)).status, len(engine.received)) == (400, 2)
    assert ((await gateway.chat(stream=True)).status, len(engine.received)) == (200, 3)
    answer = await gateway.chat(stream=True)
    assert (answer.status, answer.json["error"]["message"], len(engine.received)) == (400, "No such role.", 4)


async def test_an_engine_that_reports_nothing_is_not_counted(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(openai_stream("Hello.", reports=False))
    assert (await gateway.chat(stream=True)).streamed_text == "Hello."
    assert await gateway.metric(TOKENS % "chat") == 0
