"""Engines' odd replies, over real HTTP: the chat API, the Messages API and the Responses API give one result.

The rows are shapes that were seen in the wild; docs/engine-replies.md names the engines.
"""

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson
import pytest

from tests.fakes.streaming_engine import MODEL, FakeEngine, SendsBytes
from tests.gateway.running import CHAT, Gateway, said

Object: TypeAlias = dict[str, Any]
USER = {"user_id": "u1"}
NAMES = ("weather", "note")
SCHEMA: Object = {"type": "object", "properties": {}}
OSLO, ROME = ("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})
DONE = "[DONE]"


@dataclass(frozen=True)
class Result:
    """What a client has of a reply. ``end`` is ``answered``, ``calls``, ``cut`` or ``failed: `` with the words."""

    text: str = ""
    calls: tuple[tuple[str, Object], ...] = ()
    end: str = "answered"


def call(name: str | None = "weather", arguments: object = "", **more: object) -> Object:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"function": function, **more}


def calls(*pieces: Object, finish: object = None) -> Object:
    return {"index": 0, "delta": {"tool_calls": list(pieces)}, "finish_reason": finish}


def text(content: object, finish: object = None, **more: object) -> Object:
    return {"index": 0, "delta": {"content": content, **more}, "finish_reason": finish}


END: Object = {"index": 0, "delta": {}, "finish_reason": "stop"}
CALLED: Object = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
A, B = '{"city": "Oslo"}', '{"city": "Rome"}'
BOTH = Result(calls=(OSLO, ROME), end="calls")
ONE = Result(calls=(OSLO,), end="calls")
ROWS: dict[str, tuple[list[Any], Result]] = {
    "two calls, both index 0": (
        [calls(call(arguments=A, index=0, id="a")), calls(call(arguments=B, index=0, id="b")), CALLED],
        BOTH,
    ),
    "no index": ([calls(call(arguments=A, id="a"), call(arguments=B, id="b")), CALLED], BOTH),
    "no index, no id, whole": ([calls(call(arguments=A)), calls(call(arguments=B)), CALLED], BOTH),
    "index as text": (
        [calls(call(arguments=A, index="0", id="a")), calls(call(arguments=B, index="1", id="b")), CALLED],
        BOTH,
    ),
    "one id for all": (
        [calls(call(arguments=A, index=0, id="x")), calls(call(arguments=B, index=1, id="x")), CALLED],
        BOTH,
    ),
    "interleaved": (
        [
            calls(call(arguments='{"city"', index=0, id="a")),
            calls(call(arguments='{"city": ', index=1, id="b")),
            calls(call(None, ': "Oslo"}', index=0)),
            calls(call(None, '"Rome"}', index=1)),
            CALLED,
        ],
        BOTH,
    ),
    "interleaved, all index 0": (
        [
            calls(call(arguments='{"city"', index=0, id="a")),
            calls(call(arguments='{"city": ', index=0, id="b")),
            calls(call(None, ': "Oslo"}', index=0, id="a")),
            calls(call(None, '"Rome"}', index=0, id="b")),
            CALLED,
        ],
        BOTH,
    ),
    "name in pieces": (
        [calls(call("wea", index=0, id="a")), calls(call("ther", index=0)), calls(call(None, A, index=0)), CALLED],
        ONE,
    ),
    "id in pieces": (
        [calls(call(index=0, id="ca")), calls(call(None, index=0, id="ll")), calls(call(None, A, index=0)), CALLED],
        ONE,
    ),
    "name and id in every piece": (
        [calls(call(arguments=piece, index=0, id="a")) for piece in ("", '{"city"', ': "Oslo"}')] + [CALLED],
        ONE,
    ),
    "another id in every piece": (
        [
            calls(call("weather" if i == 0 else None, piece, index=0, id=f"i{i}"))
            for i, piece in enumerate(('{"city"', ': "Oslo"}'))
        ]
        + [CALLED],
        ONE,
    ),
    "arguments before the name": (
        [calls(call(None, '{"city"', index=0, id="a")), calls(call(arguments=': "Oslo"}', index=0)), CALLED],
        ONE,
    ),
    "arguments as an object": ([calls(call(arguments={"city": "Oslo"}, index=0, id="a")), CALLED], ONE),
    "arguments once more at the end": (
        [calls(call(arguments=A, index=0, id="a")), calls(call(None, A, index=0)), CALLED],
        ONE,
    ),
    "arguments empty": ([calls(call("note", "", index=0, id="a")), CALLED], Result(calls=(("note", {}),), end="calls")),
    "arguments null": (
        [calls(call("note", None, index=0, id="a")), CALLED],
        Result(calls=(("note", {}),), end="calls"),
    ),
    "no function object": ([calls({"index": 0, "id": "a", "name": "weather", "arguments": A}), CALLED], ONE),
    "null in every piece": (
        [
            calls({"index": 0, "id": "a", "type": "function", "function": {"name": "weather", "arguments": None}}),
            calls({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": A}}),
            CALLED,
        ],
        ONE,
    ),
    "stop beside calls": ([calls(call(arguments=A, index=0, id="a")), END], ONE),
    "calls finished, none made": ([text("Hi."), CALLED], Result("Hi.")),
    "text behind a call that is open": (
        [
            calls(call(arguments='{"city"', index=0, id="a")),
            text("Hi."),
            calls(call(None, ': "Oslo"}', index=0)),
            CALLED,
        ],
        Result("Hi.", (OSLO,), "calls"),
    ),
    "no name at all": (
        [calls(call(None, A, index=0, id="a")), CALLED],
        Result(end="failed: a tool call of the engine has no name"),
    ),
    "one call in the place of a list": (
        [{"index": 0, "delta": {"tool_calls": call(arguments=A, index=0, id="")}}, text("", "eos_token")],
        ONE,
    ),
    "content in parts": ([text([{"type": "text", "text": "H"}, {"type": "text", "text": "i."}]), END], Result("Hi.")),
    "content as one part": ([text({"type": "text", "text": "Hi."}), END], Result("Hi.")),
    "finish reason empty on each": ([text("H", ""), text("i.", ""), END], Result("Hi.")),
    "finish reason null as text": ([text("H", "null"), text("i.", "None"), END], Result("Hi.")),
    "finish reason of another API": ([text("Hi.", "max_tokens")], Result("Hi.", end="cut")),
    "no finish reason": ([text("Hi.")], Result("Hi.")),
    "choice without index": ([{"delta": {"content": "Hi."}}, {"delta": {}, "finish_reason": "stop"}], Result("Hi.")),
    "a message in the place of a delta": (
        [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
        Result("Hi."),
    ),
    "an error chunk": (
        [text("Hi."), {"error": {"message": "out of memory", "code": 500}}],
        Result("Hi.", end="failed: out of memory"),
    ),
    "an error in words": ([text("Hi."), {"error": "out of memory"}], Result("Hi.", end="failed: out of memory")),
    "an error object": (
        [text("Hi."), {"object": "error", "message": "out of memory", "code": 400}],
        Result("Hi.", end="failed: out of memory"),
    ),
    "no error": ([{"choices": [text("Hi.")], "error": None}, END], Result("Hi.")),
    "broken off": (
        [text("Hi."), text("", "abort")],
        Result("Hi.", end="failed: the engine ended its reply early (abort)"),
    ),
    "nothing": ([], Result(end="failed: the engine ended the stream without an answer")),
}


def stream_of(events: list[Any], *, done: bool = True) -> SendsBytes:
    """The engine's stream of these choices, or of whole chunks."""
    raw = b""
    for event in events:
        is_choice = "delta" in event or ("message" in event and "object" not in event)
        raw += b"data: " + orjson.dumps({"id": "c", "choices": [event]} if is_choice else event) + b"\n\n"
    return SendsBytes([raw + (b"data: [DONE]\n\n" if done else b"")], "text/event-stream")


async def by_chat(gateway: Gateway, *, remembers: bool) -> Result:
    """The result of the chat API, read as the public clients read it."""
    tools: list[Object] = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
    memory: Object = {"memory": USER} if remembers else {}
    body: Object = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": tools,
        "stream": True,
        **memory,
    }
    answer = await gateway.post(CHAT, body)
    words, found, end = "", dict[int, Object](), "open"
    data = [raw.rpartition(b"data: ")[2] for raw in answer.events]
    for chunk in (orjson.loads(each) for each in data if each != b"[DONE]"):
        if "error" in chunk and chunk["error"] is not None:
            return Result(words, (), f"failed: {chunk['error']['message']}")
        choice = chunk["choices"][0]
        words += choice["delta"].get("content") or ""
        for piece in choice["delta"].get("tool_calls") or ():
            grows = found.setdefault(piece["index"], {"name": "", "arguments": ""})
            grows["name"] += piece["function"].get("name") or ""
            grows["arguments"] += piece["function"].get("arguments") or ""
        end = {None: end, "length": "cut"}.get(choice["finish_reason"], "calls" if found else "answered")
    assert answer.events[-1] == b"data: [DONE]"
    return Result(words, tuple((each["name"], orjson.loads(each["arguments"])) for each in found.values()), end)


async def by_messages(gateway: Gateway) -> Result:
    """The result of the Messages API."""
    tools: list[Object] = [{"name": name, "input_schema": SCHEMA} for name in NAMES]
    head: Object = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
    answer = await gateway.post("/v1/messages", {**head, "tools": tools, "stream": True, "memory": USER})
    words, found, end = "", dict[int, Object](), "open"
    for event in (orjson.loads(raw.partition(b"\ndata: ")[2]) for raw in answer.events):
        match event["type"]:
            case "error":
                return Result(words, (), f"failed: {event['error']['message']}")
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                found[event["index"]] = {"name": event["content_block"]["name"], "arguments": ""}
            case "content_block_delta":
                words += event["delta"].get("text", "")
                if "partial_json" in event["delta"]:
                    found[event["index"]]["arguments"] += event["delta"]["partial_json"]
            case "message_delta":
                reason = event["delta"]["stop_reason"]
                end = {"max_tokens": "cut", "tool_use": "calls", "end_turn": "answered"}[reason]
            case _:
                pass
    return Result(words, tuple((each["name"], orjson.loads(each["arguments"])) for each in found.values()), end)


async def by_responses(gateway: Gateway) -> Result:
    """The result of the Responses API."""
    tools: list[Object] = [{"type": "function", "name": name, "parameters": SCHEMA} for name in NAMES]
    answer = await gateway.post(
        "/v1/responses", {"model": MODEL, "input": "Hi.", "tools": tools, "stream": True, "memory": USER}
    )
    words, last = "", Object()
    for event in (orjson.loads(raw.partition(b"\ndata: ")[2]) for raw in answer.events):
        words += event["delta"] if event["type"] == "response.output_text.delta" else ""
        last = event
    response = last["response"]
    if last["type"] == "response.failed":
        return Result(words, (), f"failed: {response['error']['message']}")
    found = [item for item in response["output"] if item["type"] == "function_call"]
    made = tuple((item["name"], orjson.loads(item["arguments"])) for item in found)
    return Result(words, made, "cut" if last["type"] == "response.incomplete" else "calls" if made else "answered")


@pytest.mark.parametrize("row", ROWS)
async def test_a_stream_has_one_result_on_three_apis(row: str, gateway: Gateway, engine: FakeEngine) -> None:
    events, expected = ROWS[row]
    engine.will(*(stream_of([orjson.loads(orjson.dumps(event)) for event in events]) for _ in range(4)))
    found = {
        "chat without memory": await by_chat(gateway, remembers=False),
        "chat": await by_chat(gateway, remembers=True),
        "messages": await by_messages(gateway),
        "responses": await by_responses(gateway),
    }
    assert found == dict.fromkeys(found, expected)
    failed = expected.end.startswith("failed")
    assert len(await gateway.queued_turns()) == (0 if failed else 3)


@pytest.mark.parametrize("finished", [True, False])
async def test_a_stream_without_its_done(gateway: Gateway, engine: FakeEngine, *, finished: bool) -> None:
    engine.will(*(stream_of([text("Hi."), *([END] if finished else [])], done=False) for _ in range(4)))
    lost = "failed: the engine closed the stream before the answer was complete"
    expected = Result("Hi.", end="answered" if finished else lost)
    assert await by_chat(gateway, remembers=False) == expected
    assert await by_chat(gateway, remembers=True) == expected
    assert await by_messages(gateway) == expected
    assert await by_responses(gateway) == expected
    assert len(await gateway.queued_turns()) == (3 if finished else 0)


async def by_all(gateway: Gateway, engine: FakeEngine, reply: SendsBytes) -> dict[str, Result]:
    engine.will(*[reply] * 4)
    return {
        "chat without memory": await by_chat(gateway, remembers=False),
        "chat": await by_chat(gateway, remembers=True),
        "messages": await by_messages(gateway),
        "responses": await by_responses(gateway),
    }


ANSWER: Object = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": MODEL,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


async def test_a_stream_that_the_engine_answers_whole_is_a_stream(gateway: Gateway, engine: FakeEngine) -> None:
    found = await by_all(gateway, engine, SendsBytes([orjson.dumps(ANSWER)]))
    assert found == dict.fromkeys(found, Result("Hi."))
    assert len(await gateway.queued_turns()) == 3


async def test_a_whole_answer_to_a_stream_gives_its_usage_at_the_end(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(*[SendsBytes([orjson.dumps(ANSWER)])] * 2)
    asked = await gateway.chat(stream=True, stream_options={"include_usage": True})
    chunks = [orjson.loads(event.removeprefix(b"data: ")) for event in asked.events[:-1]]
    assert [(len(chunk["choices"]), bool(chunk.get("usage"))) for chunk in chunks] == [(1, False), (0, True)]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    not_asked = await gateway.chat(stream=True)
    assert not any(b"usage" in event for event in not_asked.events)


@pytest.mark.parametrize("kind", ["text/plain; charset=utf-8", "application/x-ndjson"])
async def test_a_stream_under_another_name_is_a_stream(kind: str, gateway: Gateway, engine: FakeEngine) -> None:
    found = await by_all(gateway, engine, SendsBytes(stream_of([text("Hi."), END]).pieces, kind))
    assert found == dict.fromkeys(found, Result("Hi."))


async def test_a_text_beside_a_number_that_json_lacks_is_kept(gateway: Gateway, engine: FakeEngine) -> None:
    """Python's own writer writes NaN and Infinity."""
    head = {name: ANSWER[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    odd: Object = {"content": [{"token": "B", "logprob": float("nan"), "bytes": None, "top_logprobs": []}]}
    choices: list[Object] = [text("A"), {**text("B"), "logprobs": odd}, text("C"), END]
    raw = b"".join(b"data: " + json.dumps({**head, "choices": [each]}).encode() + b"\n\n" for each in choices)
    found = await by_all(gateway, engine, SendsBytes([raw, b"data: [DONE]\n\n"], "text/event-stream"))
    assert found == dict.fromkeys(found, Result("ABC"))
    assert {said(turn)[-1] for turn in await gateway.queued_turns()} == {("assistant", "ABC")}


@pytest.mark.parametrize("memory", [{}, {"memory": USER}])
async def test_a_whole_answer_with_a_number_that_json_lacks_is_json(
    memory: Object, gateway: Gateway, engine: FakeEngine
) -> None:
    [choice] = ANSWER["choices"]
    logprobs: Object = {"content": [{"token": "Hi.", "logprob": -float("inf"), "bytes": None, "top_logprobs": []}]}
    engine.will(SendsBytes([json.dumps({**ANSWER, "choices": [{**choice, "logprobs": logprobs}]}).encode()]))
    answer = await gateway.chat(**memory)
    assert answer.json["choices"][0]["logprobs"]["content"][0]["logprob"] is None


async def test_an_event_that_is_no_json_ends_the_stream_with_an_error(gateway: Gateway, engine: FakeEngine) -> None:
    whole = stream_of([text("Hi.", tool_calls=None), END]).pieces[0]
    reply = SendsBytes([b'data: {"choices": [{"index": 0, "del\n\n' + whole], "text/event-stream")
    found = await by_all(gateway, engine, reply)
    assert found == dict.fromkeys(found, Result(end="failed: an event of the engine's stream is not JSON"))
    assert await gateway.queued_turns() == []


async def test_usage_before_the_text_ends_no_turn(gateway: Gateway, engine: FakeEngine) -> None:
    usage: Object = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 0}}
    head = {name: ANSWER[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    events = [{**head, **usage}, *({**head, "choices": [each]} for each in (text("Hi."), END)), {**head, **usage}]
    engine.will(stream_of(events))
    answer = await gateway.chat(memory=USER, stream=True, stream_options={"include_usage": True})
    shown = [orjson.loads(event.removeprefix(b"data: ")) for event in answer.events[:-1]]
    assert [place for place, chunk in enumerate(shown) if "memory" in chunk] == [3]
    assert said((await gateway.queued_turns())[0])[-1] == ("assistant", "Hi.")


async def test_a_reply_that_fails_after_its_usage_is_not_remembered(gateway: Gateway, engine: FakeEngine) -> None:
    usage: Object = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 0}}
    engine.will(stream_of([usage, {"error": {"message": "out of memory"}}]))
    await gateway.chat(memory=USER, stream=True, stream_options={"include_usage": True})
    assert await gateway.queued_turns() == []


@pytest.mark.parametrize("choices", [[], None, "none"])
async def test_an_answer_without_a_choice_is_an_error_and_not_remembered(
    choices: object, gateway: Gateway, engine: FakeEngine
) -> None:
    engine.will(SendsBytes([orjson.dumps({**ANSWER, "choices": choices})]))
    assert (await gateway.chat(memory=USER)).status == 502
    assert await gateway.queued_turns() == []


@pytest.mark.parametrize("memory", [{}, {"memory": USER}])
async def test_a_call_of_a_legacy_function_keeps_its_finish_reason(
    memory: Object, gateway: Gateway, engine: FakeEngine
) -> None:
    head = {name: ANSWER[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    deltas: list[Object] = [
        {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": ""}},
        {"function_call": {"arguments": A}},
        {},
    ]
    reasons = [None, None, "function_call"]
    events = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in zip(deltas, reasons, strict=True)
    ]
    engine.will(
        SendsBytes(
            [b"data: " + orjson.dumps(each) + b"\n\n" for each in events] + [b"data: [DONE]\n\n"], "text/event-stream"
        )
    )
    answer = await gateway.chat(stream=True, functions=[{"name": "weather", "parameters": SCHEMA}], **memory)
    shown = [orjson.loads(event.removeprefix(b"data: "))["choices"][0]["finish_reason"] for event in answer.events[:-1]]
    assert shown == reasons


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reason", "word"), [("stop_sequence", "stop"), ("COMPLETE", "stop"), ("RECITATION", "content_filter")]
)
async def test_a_finish_reason_of_another_api_is_openais(
    reason: str, word: str, gateway: Gateway, engine: FakeEngine, *, stream: bool
) -> None:
    [choice] = ANSWER["choices"]
    engine.will(SendsBytes([orjson.dumps({**ANSWER, "choices": [{**choice, "finish_reason": reason}]})]))
    answer = await gateway.chat(stream=stream)
    told = orjson.loads(answer.events[0].removeprefix(b"data: ")) if stream else answer.json
    assert told["choices"][0]["finish_reason"] == word


WHOLE: dict[str, Object] = {
    "an object": {"error": {"message": "out of memory", "code": 500}},
    "words": {"error": "out of memory"},
    "an error object": {"object": "error", "message": "out of memory", "type": "x", "code": 500},
    "a detail": {"detail": "out of memory"},
}


@pytest.mark.parametrize("kind", WHOLE)
async def test_an_error_with_status_200_is_an_error_and_remembered_nowhere(
    kind: str, gateway: Gateway, engine: FakeEngine
) -> None:
    engine.will(*(SendsBytes([orjson.dumps(WHOLE[kind])]) for _ in range(3)))
    messages = [{"role": "user", "content": "Hi."}]
    for path, body in (
        (CHAT, {"messages": messages}),
        ("/v1/messages", {"messages": messages, "max_tokens": 9}),
        ("/v1/responses", {"input": "Hi."}),
    ):
        answer = await gateway.post(path, {"model": MODEL, "memory": USER, **body})
        assert answer.status == 502
        assert answer.error["message"] == "out of memory"
    assert await gateway.queued_turns() == []


async def test_a_whole_answer_in_odd_shapes_is_one_in_openais(gateway: Gateway, engine: FakeEngine) -> None:
    odd = call(arguments={"city": "Oslo"}), call("note", "")
    message = {"role": "assistant", "content": [{"type": "text", "text": "Hi."}], "tool_calls": list(odd)}
    engine.will(SendsBytes([orjson.dumps({"choices": [{"message": message, "finish_reason": None}]})]))
    answer = await gateway.chat(memory=USER)
    choice = answer.json["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", "Hi.")
    made = choice["message"]["tool_calls"]
    assert [each["function"] for each in made] == [
        {"name": "weather", "arguments": '{"city":"Oslo"}'},
        {"name": "note", "arguments": "{}"},
    ]
    assert len({each["id"] for each in made}) == 2
    assert said((await gateway.queued_turns())[0])[-1] == ("assistant", "Hi.")
