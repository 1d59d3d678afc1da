"""The conformance checks can fail: engines that misbehave in one way each, and the row that says so."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from inference.conformance import chats, running, tools
from inference.conformance.probe import Probe
from inference.conformance.suite import EXPLAINED, Check, Row, run_checks
from memloop.wire.chat import Json
from memloop_clients import EngineClient
from tests.fakes.web_server import serving

Answer = Callable[[Json], web.StreamResponse]


def message(finish_reason: str = "stop", **fields: object) -> web.Response:
    """A chat completion with this message."""
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": "", **fields}}
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    return web.json_response({"object": "chat.completion", "choices": [choice], "usage": usage})


def call(name: str = "ignore_memory", arguments: str = '{"reason": "small talk"}') -> Json:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


def refused(status: int) -> web.Response:
    return web.json_response({"error": {"message": "no"}}, status=status)


@asynccontextmanager
async def engine(answer: Answer, *, gauges: str = "") -> AsyncGenerator[Probe]:
    """An engine whose chats are answered so."""

    async def chat(request: web.Request) -> web.StreamResponse:
        try:
            body: Json = json.loads(await request.read())
        except ValueError:
            return refused(400)
        return answer(body)

    async def models(request: web.Request) -> web.Response:
        del request
        return web.json_response({"data": [{"id": "m", "max_model_len": 4096}]})

    async def metrics(request: web.Request) -> web.Response:
        del request
        return web.Response(text=gauges)

    routes = [web.post("/v1/chat/completions", chat), web.get("/v1/models", models), web.get("/metrics", metrics)]
    async with serving(routes) as url, EngineClient(f"{url}/v1", model="m") as client:
        yield Probe(client, "m", f"{url}/metrics")


async def row_of(check: Check, answer: Answer, *, gauges: str = "") -> Row:
    async with engine(answer, gauges=gauges) as probe:
        (row,) = [row async for row in run_checks(probe, [check])]
        return row


FAULTS: dict[str, tuple[Check, Callable[[], web.Response], str]] = {
    "no choice": (chats.a_reply_ends_by_itself, lambda: web.json_response({"choices": []}), "no choice"),
    "empty text": (chats.a_reply_ends_by_itself, lambda: message(content=" "), "empty"),
    "silent cut": (chats.a_cut_reply_says_so, lambda: message("stop", content="a"), "'stop'"),
    "no usage": (chats.usage_is_told, lambda: web.json_response({"choices": [{"message": {}}]}), "usage is"),
    "thinks anyway": (chats.thinking_can_be_off, lambda: message(reasoning_content="hm"), "still thinks"),
    "schema broken": (chats.a_reply_fits_its_schema, lambda: message(content="one, I think"), "one, I think"),
    "empty calls": (tools.required_makes_one_call, lambda: message("tool_calls", tool_calls=[]), "no native call"),
    "bad arguments": (
        tools.required_makes_one_call,
        lambda: message("tool_calls", tool_calls=[call(arguments='{"reason": ')]),
        "not a JSON object",
    ),
    "other tool": (tools.a_named_tool_is_called, lambda: message(tool_calls=[call("search_memory")]), "it calls"),
    "lost call": (tools.the_writer_calls_while_thinking, lambda: message(content="I would ignore it."), "no tool call"),
    "unknown field": (chats.unknown_fields_do_no_harm, lambda: refused(422), "422"),
    "any model": (chats.an_unknown_model_is_refused, lambda: message(content="a"), "200"),
    "cut prompt": (chats.an_over_long_prompt_is_refused, lambda: message(content="a"), "200"),
    "engine error": (tools.a_tool_result_is_taken, lambda: refused(500), "500"),
    "no stream": (chats.a_stream_is_whole, lambda: message(content="a"), "[DONE]"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_fails_its_row_and_shows_the_observation(fault: str) -> None:
    check, answer, seen = FAULTS[fault]
    row = await row_of(check, lambda _: answer())
    assert (row.verdict, seen in row.detail) == ("FAILED", True), row.detail


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
async def test_thinking_is_found_under_either_name(name: str) -> None:
    row = await row_of(chats.thinking_is_apart, lambda _: message(content="Well.", **{name: "How am I?"}))
    assert row.verdict == "passed"


async def test_a_call_inside_the_thinking_is_found() -> None:
    lost = (
        f"<think>so I call <tool_call>{json.dumps({'name': 'ignore_memory', 'arguments': {'reason': 'x'}})}</tool_call>"
    )
    row = await row_of(tools.the_writer_calls_while_thinking, lambda _: message(content=lost))
    assert (row.verdict, row.detail) == ("passed", "fallback")


async def test_a_known_difference_is_explained_and_still_shown() -> None:
    row = await row_of(tools.a_named_call_ends_as_a_call, lambda _: message("stop", tool_calls=[call()]))
    assert row.verdict == "explained"
    assert "'stop'" in row.detail
    assert EXPLAINED[tools.a_named_call_ends_as_a_call] in row.detail


async def test_abandoned_work_that_goes_on_fails_where_gauges_show_it() -> None:
    gauges = '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine="0"} 1\n'
    row = await row_of(running.an_answer_that_nobody_awaits_stops, lambda _: message(content="a"), gauges=gauges)
    assert (row.verdict, row.detail) == ("FAILED", "it still runs after 2 s")


def heard(body: Json, name: str) -> str:
    """What a writer replies that keeps the last words of the user, as a list of this name."""
    said = str(body["messages"]).rpartition("[user]: ")[2]
    return json.dumps({name: [{"key": "k", "memory_type": "UserMemory", "value": said, "tags": []}], "summary": ""})


def only_in_json(body: Json) -> web.Response:
    """A small model: offered tools it ignores all that it is told, asked for JSON it lists it."""
    return message(tool_calls=[call()]) if "tools" in body else message(content=heard(body, "memory list"))


async def test_a_model_that_loses_facts_by_tools_is_named_with_the_profile_that_keeps_them() -> None:
    row = await row_of(tools.the_writer_keeps_what_it_is_told, only_in_json)
    assert row.verdict == "explained"
    assert row.detail.startswith("it loses facts, but keeps them with MEMLOOP_PROFILE=extractor")


async def test_a_model_that_loses_two_facts_in_each_form_is_asked_no_more() -> None:
    bodies: list[Json] = []

    def loses(body: Json) -> web.Response:
        bodies.append(body)
        return message(tool_calls=[call()]) if "tools" in body else message(content='{"memory list": []}')

    row = await row_of(tools.the_writer_keeps_what_it_is_told, loses)
    assert row.detail.startswith("it loses facts, also with MEMLOOP_PROFILE=extractor")
    assert len(bodies) == 4


async def test_a_model_that_keeps_facts_passes() -> None:
    def keeps(body: Json) -> web.Response:
        return message(tool_calls=[call("add_memory", heard(body, "memory_list"))])

    row = await row_of(tools.the_writer_keeps_what_it_is_told, keeps)
    assert (row.verdict, row.detail) == ("passed", "at least 3 of 4 facts")


async def test_an_engine_without_gauges_is_explained() -> None:
    async with engine(lambda _: message(content="a")) as probe:
        blind = Probe(probe.client, probe.model, None)
        rows = [row async for row in run_checks(blind, [running.gauges_are_told])]
    assert [row.verdict for row in rows] == ["explained"]
