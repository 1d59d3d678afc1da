"""What the gateway sends on its three APIs over a scripted engine, whole and event by event, with memory on.

Each scene is one reply of an engine: in OpenAI's own form, in vLLM's, which adds fields and nulls of its own, and bare,
with nothing but the answer.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import orjson

from gateway.responses.calls import LOCAL_SHELL, TOOL_SEARCH, flat_name
from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import MODEL, Behaviour, Cuts, FakeEngine, Refuses, SendsBytes
from tests.gateway.running import Gateway

Object: TypeAlias = dict[str, Any]
Api: TypeAlias = Literal["chat", "responses", "messages"]
Form: TypeAlias = Literal["openai", "vllm", "bare"]
PATHS: Mapping[Api, str] = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
HI: Object = {"role": "user", "content": "Hi."}
OBJECT: Object = {"type": "object", "properties": {"input": {"type": "string"}}}
NAMES = ("weather", "note")
CLIENTS_TOOLS: list[Object] = [
    {"type": "custom", "name": "patch"},
    {
        "type": "namespace",
        "name": "agents",
        "description": "Agents.",
        "tools": [{"type": "function", "name": "close", "parameters": OBJECT}],
    },
    {"type": "local_shell"},
    {"type": "tool_search", "execution": "client", "parameters": OBJECT},
]
MADE: Object = {
    "memory": {"user_id": "u1"},
    "model": MODEL,
}
ASKED: Mapping[Api, Object] = {
    "chat": {"messages": [HI], "tools": [{"type": "function", "function": {"name": name}} for name in NAMES]},
    "responses": {"input": "Hi.", "tools": [{"type": "function", "name": name, "parameters": {}} for name in NAMES]},
    "messages": {
        "max_tokens": 2000,
        "messages": [HI],
        "tools": [{"name": name, "input_schema": OBJECT} for name in NAMES],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    },
}


@dataclass(frozen=True)
class Scene:
    """A reply of an engine: the message, the reason of its end, and what each API is asked beside the usual."""

    message: Object
    finish_reason: str = "stop"
    logprobs: Object | None = None
    asked: Mapping[Api, Object] = field(default_factory=dict[Api, Object])
    apis: tuple[Api, ...] = ("chat", "responses", "messages")


@dataclass(frozen=True)
class Transcript:
    """One answer: its body, or the bodies of its events in their order."""

    name: str
    api: Api
    streamed: bool
    bodies: tuple[Object, ...]


def calls(*named: tuple[str, Object]) -> list[Object]:
    """Calls of functions, as an engine writes them."""
    return [
        {
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": name, "arguments": orjson.dumps(given).decode()},
        }
        for place, (name, given) in enumerate(named)
    ]


TOKEN: Object = {"token": "Rex", "logprob": -0.1, "bytes": [82, 101, 120]}
PROBABILITIES: Object = {"content": [{**TOKEN, "top_logprobs": [TOKEN]}], "refusal": None}
OSLO = ("weather", {"city": "Oslo"})
SCENES: Mapping[str, Scene] = {
    "text": Scene({"content": "Rex."}),
    "cut at the limit": Scene({"content": "Re"}, "length"),
    "filtered": Scene({"content": "Re"}, "content_filter"),
    "refusal": Scene({"content": None, "refusal": "I cannot."}),
    "two calls": Scene({"content": None, "tool_calls": calls(OSLO, ("note", {}))}, "tool_calls"),
    "text and a call": Scene({"content": "Let me see.", "tool_calls": calls(OSLO)}, "tool_calls"),
    "thoughts": Scene({"reasoning_content": "A dog.", "content": "Rex."}),
    "thoughts that are not shown": Scene(
        {"reasoning_content": "A dog.", "content": None, "tool_calls": calls(OSLO)},
        "tool_calls",
        asked={"messages": {"thinking": {"type": "disabled"}}},
    ),
    "a summary of thoughts": Scene(
        {"reasoning_content": "A dog.", "content": "Rex."},
        asked={"responses": {"reasoning": {"effort": "low", "summary": "auto"}}},
        apis=("responses",),
    ),
    "probabilities": Scene(
        {"content": "Rex"},
        logprobs=PROBABILITIES,
        asked={
            "chat": {"logprobs": True, "top_logprobs": 1},
            "responses": {"include": ["message.output_text.logprobs"], "top_logprobs": 1},
        },
        apis=("chat", "responses"),
    ),
    "usage of a stream": Scene(
        {"content": "Rex."}, asked={"chat": {"stream_options": {"include_usage": True}}}, apis=("chat",)
    ),
    "tools of the client": Scene(
        {
            "content": None,
            "tool_calls": calls(
                ("patch", {"input": "*** Begin Patch"}),
                (flat_name("close", "agents"), {}),
                (LOCAL_SHELL, {"command": ["ls"]}),
                (TOOL_SEARCH, {"query": "mail"}),
            ),
        },
        "tool_calls",
        asked={"responses": {"tools": CLIENTS_TOOLS}},
        apis=("responses",),
    ),
    "nothing asked of memory": Scene({"content": "Rex."}, asked={api: {"memory": None} for api in PATHS}),
    "everything repeated": Scene(
        {"content": '{"name":"Rex"}'},
        asked={
            "responses": {
                "instructions": "Be brief.",
                "metadata": {"topic": "dogs"},
                "temperature": 0.5,
                "top_p": 0.9,
                "max_output_tokens": 50,
                "max_tool_calls": 3,
                "user": "u1",
                "safety_identifier": "s1",
                "prompt_cache_key": "k",
                "service_tier": "default",
                "parallel_tool_calls": False,
                "tool_choice": {"type": "function", "name": "note"},
                "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "dog", "schema": OBJECT}},
            }
        },
        apis=("responses",),
    ),
}
FAILURES: Mapping[str, Behaviour] = {
    "refused": Refuses(400, {"error": {"message": "Too long.", "type": "T", "param": None, "code": None}}),
    "busy": Refuses(429, {"error": {"message": "Slow down.", "type": "rate_limit_error", "code": "slow"}}),
    "down": Refuses(500, {"message": "It broke."}),
    "cut": Cuts("Re"),
    "broken": SendsBytes([b'data: {"error": {"message": "It broke.", "code": 500}}\n\n'], "text/event-stream"),
}
FAULTS: Mapping[str, Object] = {
    "a wrong field": {"memory": {"colour": "red"}},
    "no messages": {"messages": 7, "input": 7},
}


def _completion(scene: Scene, form: Form) -> Object:
    if form == "bare":
        calls = [{"id": call["id"], "function": call["function"]} for call in scene.message.get("tool_calls", ())]
        said = scene.message | ({"tool_calls": calls} if calls else {})
        return {"choices": [{"message": said, "finish_reason": scene.finish_reason}]}
    message: Object = {"role": "assistant", **scene.message}
    choice: Object = {"index": 0, "message": message, "logprobs": scene.logprobs, "finish_reason": scene.finish_reason}
    if form == "vllm":
        message |= {name: message.get(name) for name in ("refusal", "annotations", "audio", "function_call")}
        message |= {"reasoning": message.get("reasoning_content"), "tool_calls": message.get("tool_calls", [])}
        choice |= {"stop_reason": None, "token_ids": None}
    return {**_head("chat.completion", form), "choices": [choice], "usage": _usage(form)}


def _head(kind: str, form: Form) -> Object:
    head: Object = {"id": "chatcmpl-1", "object": kind, "created": 1, "model": MODEL}
    if form == "openai":
        return {**head, "system_fingerprint": "fp_1", "service_tier": "default"}
    own = ("prompt_logprobs", "prompt_token_ids", "kv_transfer_params")
    return {**head, "system_fingerprint": None, "service_tier": None, **dict.fromkeys(own)}


def _usage(form: Form) -> Object:
    counts: Object = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    if form == "vllm":
        return {**counts, "prompt_tokens_details": None}
    thought = {
        "reasoning_tokens": 2,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    }
    return {
        **counts,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": thought,
    }


def _deltas(message: Object) -> Iterator[Object]:
    yield {"role": "assistant", "content": ""}
    for name in ("reasoning_content", "content", "refusal"):
        text = message.get(name) or ""
        yield from ({name: piece} for piece in (text[:2], text[2:]) if piece)
    for place, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        head = {**call, "index": place, "function": {**call["function"], "arguments": ""}}
        yield {"tool_calls": [head]}
        yield from (
            {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}
            for piece in (arguments[:3], arguments[3:])
            if piece
        )


def _events(scene: Scene, form: Form) -> Iterator[bytes]:
    if form == "bare":
        for delta in [*_deltas(scene.message)][1:]:
            for call in delta.get("tool_calls", ()):
                call.pop("type", None)
            yield _data({"choices": [{"delta": delta}]})
        yield _data({"choices": [{"delta": {}, "finish_reason": scene.finish_reason}]})
        return
    head = _head("chat.completion.chunk", form)
    every: Object = {"usage": None} if form == "openai" else {}
    for delta in _deltas(scene.message):
        choice = {"index": 0, "delta": delta, "logprobs": scene.logprobs if "content" in delta else None}
        yield _data({**head, "choices": [{**choice, "finish_reason": None}], **every})
    choice: Object = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": scene.finish_reason}
    yield _data({**head, "choices": [choice], **every})
    yield _data({**head, "choices": [], "usage": _usage(form)})
    yield b"data: [DONE]\n\n"


def _data(chunk: Object) -> bytes:
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


async def transcripts(gateway: Gateway, engine: FakeEngine, store: FakeStore) -> AsyncIterator[Transcript]:
    """Every scene on every API that has it, then every failure, whole and streamed."""
    store.finds = [memory("m1", "The user's dog is Rex.")]
    for name, scene in SCENES.items():
        for api in scene.apis:
            for form in get_args(Form):
                body = {**MADE, **ASKED[api], **scene.asked.get(api, {})}
                engine.will(SendsBytes([orjson.dumps(_completion(scene, form))]))
                yield await _answered(gateway, f"{name}, {form}", api, body)
                engine.will(SendsBytes(list(_events(scene, form)), "text/event-stream"))
                yield await _answered(gateway, f"{name}, {form}", api, {**body, "stream": True})
    for api in PATHS:
        for name, failure in FAILURES.items():
            for stream in (False, True) if isinstance(failure, Refuses) else (True,):
                engine.will(failure)
                yield await _answered(gateway, name, api, {**MADE, **ASKED[api], "stream": stream})
        for name, fault in FAULTS.items():
            yield await _answered(gateway, name, api, {**MADE, **ASKED[api], **fault})


async def _answered(gateway: Gateway, name: str, api: Api, body: Object) -> Transcript:
    answer = await gateway.post(PATHS[api], body)
    if not answer.headers["Content-Type"].startswith("text/event-stream"):
        return Transcript(name, api, streamed=False, bodies=(answer.json,))
    data = [event.partition(b"data: ")[2] for event in answer.events]
    return Transcript(name, api, True, tuple(orjson.loads(one) for one in data if one and one != b"[DONE]"))
