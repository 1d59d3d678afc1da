"""What a loop learns of a model's chat template from the refusals of its engine."""

from dataclasses import replace

import orjson
import pytest
from pydantic import JsonValue

from memloop.templates import ANY_ROLES, ChatTemplate
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError
from memloop_clients import EngineClient
from memloop_clients.dialects import MOST_MODELS, Learned, messages_of
from memloop_clients.endpoints import ENDPOINTS, Recognised
from memloop_clients.engine import CHAT_PATH
from tests.fakes import strict_shapes as shape
from tests.fakes.strict_endpoint import strict_endpoint
from tests.fakes.strict_shapes import Body, Refused
from tests.fakes.strict_specs import SPECS

IN_TURNS = "Conversation roles must alternate user/assistant/user/assistant/..."
NO_SYSTEM = "System role not supported"
NO_TOOLS = "Only user and assistant roles are supported!"


class Gemma:
    """An engine whose template takes user and assistant in turns, and nothing else."""

    def __init__(self) -> None:
        self.asked: list[Json] = []

    async def post(self, body: Json) -> Json:
        self.asked.append(body)
        roles = [str(message["role"]) for message in messages_of(body)]
        for fault, message in (("system" in roles, NO_SYSTEM), ("tool" in roles, NO_TOOLS)):
            if fault:
                raise EngineError(message, engine_status=400)
        if roles != (["user", "assistant"] * len(roles))[: len(roles)]:
            raise EngineError(IN_TURNS, engine_status=400)
        return {"roles": list[JsonValue](roles)}


async def nothing(path: str) -> Json:
    del path
    return {}


def learned() -> Learned:
    return Learned(Recognised(ENDPOINTS["vllm"], below=nothing, beside=nothing).dialect_of)


def request(*messages: tuple[str, str]) -> Json:
    return {"model": "gemma", "messages": [{"role": role, "content": text} for role, text in messages]}


REPAIR = request(("system", "s"), ("user", "a"), ("assistant", "b"), ("tool", "c"))


async def test_a_chat_in_refused_roles_is_sent_in_roles_that_the_template_takes() -> None:
    gemma = Gemma()
    assert await learned().send(REPAIR, gemma.post) == {"roles": ["user", "assistant", "user"]}


async def test_the_roles_are_remembered_for_the_model() -> None:
    gemma, spoken = Gemma(), learned()
    await spoken.send(REPAIR, gemma.post)
    refused = len(gemma.asked)
    await spoken.send(request(("system", "s"), ("user", "a"), ("user", "b")), gemma.post)
    assert len(gemma.asked) == refused + 1
    assert gemma.asked[-1]["messages"] == [{"role": "user", "content": "s\n\na\n\nb"}]


async def test_roles_that_were_not_the_reason_are_sent_as_before() -> None:
    spoken = learned()

    async def always(body: Json) -> Json:
        raise EngineError("chat template: the model is broken", engine_status=400)

    with pytest.raises(EngineError, match="broken"):
        await spoken.send(REPAIR, always)
    assert (await spoken.dialect("gemma")).template.takes_all


async def test_models_that_clients_name_are_forgotten_the_oldest_first() -> None:
    gemma, spoken = Gemma(), learned()
    await spoken.send({**REPAIR, "model": "first"}, gemma.post)
    for number in range(MOST_MODELS):
        await spoken.send({**REPAIR, "model": f"m{number}"}, gemma.post)
    assert spoken.template("first") == ANY_ROLES
    assert not spoken.template("m0").takes_all


async def test_a_described_template_is_spoken_from_the_first_request() -> None:
    gemma, spoken = Gemma(), learned()
    spoken.describe("gemma", ChatTemplate(system=False, developer=False, tools=False, alternates=True))
    await spoken.send(REPAIR, gemma.post)
    assert len(gemma.asked) == 1


async def test_a_loop_and_a_chat_learn_from_one_anothers_refusals() -> None:
    def in_turns(body: Body) -> Refused | None:
        roles = [message["role"] for message in body["messages"]]
        return shape.vllm(400, IN_TURNS) if roles != (["user", "assistant"] * len(roles))[: len(roles)] else None

    twice: list[JsonValue] = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    spec = replace(next(spec for spec in SPECS if spec.name == "vllm"), rules=(in_turns,))
    for first_loop in (True, False):
        async with strict_endpoint(spec) as endpoint, EngineClient(endpoint.url, model="m") as client:
            for loop in (first_loop, not first_loop):
                body: Json = {"model": "m", "messages": twice}
                if loop:
                    await client.chat(body)
                else:
                    chat = orjson.dumps(body)
                    raw = await client.send_raw(chat, path=CHAT_PATH)
                    raw = raw if raw.succeeded else await client.in_other_roles(chat, raw)
                    assert raw.status == 200
                    raw.close()
            assert [len(asked["messages"]) for asked in endpoint.asked] == [2, 1, 1]
