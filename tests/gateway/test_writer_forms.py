"""What is told is found, whatever form of reply the engine and its model can give; operators see the form."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TypeAlias

import pytest

from tests.fakes.job_engine import Body, Reply, add_memory, cut, listed, tool_call
from tests.gateway.api_rig import Api, api

Engine: TypeAlias = Callable[[Body], Reply]
FACT = "Alice's dog is called Rufus."
SAID = {"messages": [{"role": "user", "content": "My dog is called Rufus."}]}
DRAFT = {"key": "dog", "memory_type": "UserMemory", "value": FACT, "tags": ["dog"]}
CALL = {"name": "add_memory", "arguments": {"memory_list": [DRAFT], "summary": "a dog"}}
LIST = json.dumps({"memory_list": [DRAFT], "summary": "a dog"})
BRACES = f"Based on the talk {{about a dog}}, here it is:\n```json\n{LIST.replace(']}]', '],}]')}\n```"
PYTHON = f"add_memory(memory_list=[{DRAFT!r}], summary='a dog')"
XML = (
    f"<tool_call>\n<function=add_memory>\n<parameter=memory_list>\n{json.dumps([DRAFT])}\n</parameter>\n"
    "<parameter=summary>\na dog\n</parameter>\n</function>\n</tool_call>"
)


def always(reply: Reply) -> Engine:
    """A model that gives this reply in every form."""
    return lambda _: reply


def in_json(reply: Reply, *, to_tools: Reply = "I have made a note of that!", to_schema: Reply | None = None) -> Engine:
    """A model that cannot call tools; asked for JSON it replies so."""

    def answer(body: Body) -> Reply:
        if body.get("tools"):
            return to_tools
        return to_schema if to_schema is not None and "response_format" in body else reply

    return answer


FOUND: Mapping[str, Engine] = {
    "a native call": always(add_memory(FACT)),
    "a call as text": always(f"<tool_call>\n{json.dumps(CALL)}\n</tool_call>"),
    "a call as text that never closes": always(f"<tool_call>{json.dumps(CALL)}"),
    "Mistral's mark": always(f"[TOOL_CALLS][{json.dumps(CALL)}]"),
    "Mistral's mark, newer": always(f"[TOOL_CALLS]add_memory[ARGS]{LIST}"),
    "Llama's mark": always(f"<|python_tag|>{json.dumps({**CALL, 'parameters': CALL['arguments']})}"),
    "Llama's function": always(f"<function=add_memory>{LIST}</function>"),
    "Qwen's function": always(XML),
    "python": always(f"I call {PYTHON}."),
    "ReAct": always(f"Action:\n{json.dumps({'action': 'add_memory', 'action_input': CALL['arguments']})}"),
    "a wrong tool name": always(tool_call("addMemory", memory_list=[DRAFT], summary="")),
    "a wrong tool name as text": always(json.dumps({**CALL, "name": "memory.add"})),
    "arguments with faults": always(tool_call("add_memory", memories=[{"content": FACT}])),
    "JSON": always(LIST),
    "prose with braces, a fence, a trailing comma": always(BRACES),
    "single quotes": always(LIST.replace("Alice's", "Alice has a").replace('"', "'")),
    "smart quotes": always(listed(FACT).replace('"', "”")),
    "thoughts in front": always(f"<think>The user {{has}} a dog.</think>\n{LIST}"),
    "thoughts in front, opened by the template": always(f"The user has a dog.</think>{LIST}"),
    "a list in place of the object": always(json.dumps([DRAFT])),
    "one memory in place of the list": in_json(json.dumps(DRAFT)),
    "an object in place of the list": in_json(json.dumps({"memories": DRAFT})),
    "a list of sentences": in_json(json.dumps([FACT])),
    "no end": always(LIST[:-1]),
    "cut after an entry": in_json(cut(LIST[: LIST.rindex("]")] + ', {"key": "c')),
    "tools refused": in_json(listed(FACT), to_tools=400),
    "response_format refused": in_json(listed(FACT), to_schema=400),
    "tools and response_format refused": in_json(listed(FACT), to_tools=422, to_schema=422),
    "response_format refused by a broken grammar": in_json(listed(FACT), to_tools=400, to_schema=400),
    "nothing where a schema is asked for": in_json(listed(FACT), to_schema=""),
    "response_format ignored": in_json(f"Here you are:\n```json\n{LIST}\n```"),
    "prose to tools": in_json(listed(FACT)),
    "nothing to tools": in_json(listed(FACT), to_tools=""),
    "no end to tools": in_json(listed(FACT), to_tools=cut("And then, and then, and then")),
    "an empty list of calls": in_json(listed(FACT), to_tools={"role": "assistant", "content": "", "tool_calls": []}),
    "a tool of its own": in_json(listed(FACT), to_tools=tool_call("python", code="print('a dog')")),
}


@pytest.fixture
async def served(request: pytest.FixtureRequest, redis_url: str) -> AsyncGenerator[Api]:
    """Gateway and worker on an engine of this behaviour."""
    async with api(redis_url, request.param, job_attempts=2) as it, it.rig.working():
        yield it


async def told(it: Api, user_id: str = "alice") -> Body:
    return (await it.post("/v1/memory/add", {**SAID, "user_id": user_id, "sync": True})).json


async def found_by(it: Api, user_id: str = "alice") -> Sequence[str]:
    answer = await it.post("/v1/memory/search", {"query": "What is the dog called?", "user_id": user_id})
    return [hit["item"]["memory"] for hit in answer.json["results"]]


def engines(named: Mapping[str, Engine]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "served", [pytest.param(engine, id=name) for name, engine in named.items()], indirect=True
    )


@engines(FOUND)
async def test_what_is_told_is_found(served: Api) -> None:
    for attempt in range(4):
        status = (await told(served, f"u{attempt}"))["status"]
        assert status in ({"completed", "kept_verbatim"} if attempt < 3 else {"completed"})  # by now its form is known
        assert ["Rufus" in memory for memory in await found_by(served, f"u{attempt}")] == [True]


@engines({"no tools": in_json(listed(FACT), to_tools=400)})
async def test_a_form_that_is_refused_is_asked_in_once(served: Api) -> None:
    for number in range(3):
        await told(served, f"u{number}")
    asked = [bool(call.get("tools")) for call in served.rig.engine.calls]
    assert asked == [True, False, False, False]


@engines({"no calls": in_json(listed(FACT))})
async def test_an_operator_sees_the_form_of_each_model(served: Api) -> None:
    for number in range(2):
        await told(served, f"u{number}")
    details = (await served.get("/readyz?verbose")).json["details"]["models"]["m"]
    assert (details["dialect"], details["response_format"]) == ("any", ["json_schema", "json_object"])
    assert details["roles"] == {"system": True, "developer": True, "tools": True, "alternates": False}
    assert "memory_writer" not in details  # the API process writes none
    assert "details" not in (await served.get("/readyz")).json
    seen = await served.rig.work.backend.models.details(writes=True)
    assert seen["m"]["memory_writer"] == {"form": "json_schema", "forms_left": ["json"]}  # type: ignore[index]
    shown = served.rig.work.metrics._writer_form  # type: ignore[attr-defined]
    values = {sample.labels["form"]: sample.value for family in shown.collect() for sample in family.samples}
    assert values == {"tools": 0, "forced_tools": 0, "json_schema": 1, "json": 0, "lines": 0}
