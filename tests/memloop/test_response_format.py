"""``response_format``: asked of every endpoint that documents it, in a type that it takes, left out on refusal."""

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeAlias

import pytest
from pydantic import JsonValue

from memloop.loops.memreader import decide
from memloop.loops.parsing.reading import parse_query
from memloop.loops.reader import Reader, judge
from memloop.loops.relating import parse_relations
from memloop.loops.results import AddMemories
from memloop.profiles import load_profile
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError
from memloop_clients import EngineClient
from memloop_clients.endpoints import ENDPOINTS
from memloop_clients.engine import request_body
from tests.fakes import strict_shapes as shape
from tests.fakes.model import says
from tests.fakes.strict_endpoint import MEMORY, TOO_LONG, StrictEndpoint, strict_endpoint
from tests.fakes.strict_shapes import Body, Refused
from tests.fakes.strict_specs import SPECS, Rule
from tests.memloop.reading import ListIndex, turn

Type: TypeAlias = str
ANY_SERVER = replace(
    next(spec for spec in SPECS if spec.name == "another server, strict"), fields=None, too_long=SPECS[0].too_long
)
DEFAULT, EXTRACTOR = load_profile("default"), load_profile("extractor")
ALMOST_JSON = """So: ```json
{'relations': [{'memory': '1', 'relation': 'updates', 'stored': '2'}, 7, {'memory': 2, 'relation': 'new'},
{'memory': 3, 'relation': 'unlike', 'stored': 1}],}
```"""
UPDATES = {"memory": 1, "relation": "updates", "stored": 2}
ASKED = {name: DEFAULT.prompts[name].reply for name in ("judge", "relate")} | {
    "memory": EXTRACTOR.prompts["memory"].reply
}
WORDINGS: dict[str, tuple[tuple[Type, ...], Callable[[Type], Refused]]] = {
    "OpenAI, an older model": (
        ("json_schema",),
        lambda kind: shape.openai(
            400, f"Invalid parameter: 'response_format' of type '{kind}' is not supported with this model."
        ),
    ),
    "OpenAI, gpt-4 and no JSON mode": (
        ("json_schema", "json_object"),
        lambda kind: shape.openai(
            400,
            f"Invalid parameter: 'response_format' of type '{kind}' is not supported with this model.",
            param="response_format",
        ),
    ),
    "DeepSeek": (("json_schema",), lambda _: shape.openai(400, "This response_format type is unavailable now")),
    "DeepSeek, by its parser": (
        ("json_schema",),
        lambda kind: shape.openai(
            422,
            "Failed to deserialize the JSON body into the target type: response_format: response_format.type"
            f" `{kind}` is unavailable now at line 1 column 12440",
        ),
    ),
    "Ark": (
        ("json_schema",),
        lambda kind: shape.openai(
            400,
            "The parameter `response_format.type` specified in the request are not valid: invalid value:"
            f" `{kind}`, supported values are: `json_object` and `text`.",
            param="response_format.type",
        ),
    ),
    "Groq": (
        ("json_schema",),
        lambda kind: shape.openai(400, f"This model does not support response format `{kind}`."),
    ),
    "LM Studio, of JSON mode": (
        ("json_schema", "json_object"),
        lambda _: shape.lmstudio(400, "'response_format.type' must be 'text'"),
    ),
    "llama.cpp, with a grammar it cannot make": (
        ("json_schema",),
        lambda _: shape.llama_cpp(500, "failed to parse grammar"),
    ),
    "llama.cpp, of old": (
        ("json_schema",),
        lambda kind: shape.llama_cpp(
            500, f'response_format type must be one of "text" or "json_object", but got: {kind}'
        ),
    ),
    "vLLM, xgrammar": (
        ("json_schema",),
        lambda _: shape.vllm(400, "The provided JSON schema contains features not supported by xgrammar."),
    ),
    "OpenRouter": (
        ("json_schema", "json_object"),
        lambda _: shape.openrouter(
            404, "No endpoints found that can handle the requested parameters. To learn more about provider routing"
        ),
    ),
    "a server of FastAPI": (("json_schema", "json_object"), lambda _: shape.fastapi_extra(["response_format"])),
    "a server of FastAPI, of the type": (
        ("json_schema",),
        lambda kind: Refused(
            422,
            {
                "detail": [
                    {
                        "type": "literal_error",
                        "loc": ["body", "response_format", "type"],
                        "msg": f"Input should be 'text' or 'json_object', not {kind}",
                    }
                ]
            },
        ),
    ),
    "Gemini, of a schema": (
        ("json_schema",),
        lambda _: shape.google(400, "Unknown name \"additional_properties\" at 'generation_config.response_schema'"),
    ),
    "a server that names no reason": (("json_schema", "json_object"), lambda _: shape.openai(400, "Bad Request")),
}


def refusing(types: tuple[Type, ...], words: Callable[[Type], Refused]) -> Rule:
    """Refuse requests of these types."""

    def rule(body: Body) -> Refused | None:
        kind = body["response_format"]["type"] if "response_format" in body else None
        return words(kind) if kind in types else None

    return rule


@asynccontextmanager
async def endpoint_that(
    *rules: Rule,
) -> AsyncGenerator[tuple[EngineClient, StrictEndpoint]]:
    async with (
        strict_endpoint(replace(ANY_SERVER, rules=rules)) as endpoint,
        EngineClient(endpoint.url, model="m") as client,
    ):
        yield client, endpoint


def types_of(asked: list[Body]) -> list[Type | None]:
    return [body["response_format"]["type"] if "response_format" in body else None for body in asked]


@pytest.mark.parametrize("wording", WORDINGS)
async def test_a_refused_type_steps_down_and_is_not_asked_for_again(wording: str) -> None:
    types, words = WORDINGS[wording]
    steps = [kind for kind in ("json_schema", "json_object") if kind in types]
    left = next((kind for kind in ("json_schema", "json_object") if kind not in types), None)
    async with endpoint_that(refusing(types, words)) as (client, endpoint):
        model = client.of_model("m")
        for _ in range(2):
            result = await decide([turn("I bought a boat.")], model=model, index=ListIndex(), profile=EXTRACTOR)
            assert isinstance(result.decision, AddMemories)
            assert [draft.value for draft in result.decision.drafts] == [MEMORY]
        assert await judge("Which?", "A boat.", (), reader=Reader(model, DEFAULT)) is not None
        assert types_of(endpoint.asked) == [*steps, left, left, left]


@pytest.mark.parametrize("wording", WORDINGS)
async def test_the_words_of_the_json_are_said_only_where_it_is_asked_for(wording: str) -> None:
    types, words = WORDINGS[wording]
    async with endpoint_that(refusing(types, words)) as (client, endpoint):
        verdict, _, _ = await judge("Which?", "A boat.", (), reader=Reader(client.of_model("m"), DEFAULT))
    for body in endpoint.asked:
        assert ("JSON object" in str(body["messages"])) is ("response_format" in body)
    assert verdict == ("unusable" if len(types) > 1 else "sufficient")  # the stand-in talks where no JSON is asked for


async def test_a_prompt_that_is_refused_for_itself_leaves_the_format_as_it_was() -> None:
    def filtered(body: Body) -> Refused | None:
        return shape.openai(400, "The response was filtered") if "boat" in str(body["messages"]) else None

    async with endpoint_that(filtered) as (client, endpoint):
        reader = Reader(client.of_model("m"), DEFAULT)
        with pytest.raises(EngineError, match="filtered"):
            await judge("Which boat?", "", (), reader=reader)
        endpoint.asked.clear()
        await judge("Which?", "", (), reader=reader)
        assert types_of(endpoint.asked) == ["json_schema"]


async def test_a_prompt_that_is_too_long_is_asked_once() -> None:
    async with endpoint_that() as (client, endpoint):
        with pytest.raises(EngineError):
            await judge(TOO_LONG, "", (), reader=Reader(client.of_model("m"), DEFAULT))
        assert len(endpoint.asked) == 1


@pytest.mark.parametrize("name", [name for name in ENDPOINTS if name != "anthropic"])
def test_an_endpoint_that_documents_it_is_asked_for_a_schema(name: str) -> None:
    body = request_body(DEFAULT.prompt("relate", memories="x"), model="m")
    asked = ENDPOINTS[name].dialect.fit(body)["response_format"]
    assert isinstance(asked, dict)
    assert asked["type"] == "json_schema"
    assert isinstance(asked["json_schema"], dict)
    assert asked["json_schema"].keys() == {"name", "strict", "schema"}


def test_an_endpoint_that_ignores_it_is_asked_in_words_alone() -> None:
    body = request_body(DEFAULT.prompt("relate", memories="x"), model="m")
    sent = ENDPOINTS["anthropic"].dialect.fit(body)
    assert "response_format" not in sent
    assert "JSON" not in json.dumps(sent["messages"])


def test_tools_and_a_format_are_never_asked_for_together() -> None:
    reply = ASKED["judge"]
    assert "response_format" not in request_body(
        replace(DEFAULT.prompt("memory", conversation="x"), reply=reply), model="m"
    )


def objects_in(schema: JsonValue) -> Iterator[Json]:
    if isinstance(schema, list):
        for each in schema:
            yield from objects_in(each)
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for each in schema.values():
            yield from objects_in(each)


@pytest.mark.parametrize("name", ASKED)
def test_a_schema_is_of_the_part_that_every_engine_takes(name: str) -> None:
    reply = ASKED[name]
    assert reply is not None
    assert reply.schema["type"] == "object"
    for each in objects_in(reply.schema):
        properties = each["properties"]
        assert isinstance(properties, dict)
        assert (each["required"], each["additionalProperties"]) == (list(properties), False)
    words = json.dumps(reply.schema)
    assert not [word for word in ("$ref", "$defs", "anyOf", "oneOf", "pattern", "minLength", "format") if word in words]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"query": "Where is Bob?"}', ("ask", "Where is Bob?")),
        ('```json\n{"query": "Where is Bob?"}\n```', ("ask", "Where is Bob?")),
        ("{'query': 'Where is Bob?',}", ("ask", "Where is Bob?")),
        ("<think>{\"query\": \"No?\"}</think>{'query': 'Where is Bob?'}", ("ask", "Where is Bob?")),
        ('{"query": ""}', ("sufficient", None)),
        ('{"query": " "}', ("sufficient", None)),
        ('{"query": null}', ("unusable", None)),
        ('{"answer": "Rome"}', ("unusable", None)),
        ('{"query": "Wh', ("unusable", None)),
    ],
)
def test_a_verdict_in_json_is_read(text: str, verdict: tuple[str, str | None]) -> None:
    assert parse_query(says(text)) == verdict


def test_an_empty_verdict_that_was_cut_says_nothing() -> None:
    assert parse_query(says('{"query": ""}', finish_reason="length")) == ("unusable", None)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"relations": [UPDATES, {"memory": 2, "relation": "new", "stored": 0}]}),
        '[{"memory": 1, "relation": "updates", "stored": 2}, {"memory": 2, "relation": "new"}]',
        ALMOST_JSON,
        "1: updates 2\n2: new",
    ],
    ids=["object", "list", "almost JSON", "lines"],
)
def test_relations_are_read_as_json_and_as_lines(text: str) -> None:
    found = [(each.memory, each.verb, each.stored) for each in parse_relations(says(text))]
    assert found == [(1, "updates", 2), (2, "new", None)]
