"""What a loop learns of a model's chat template from the refusals of its engine."""

import pytest
from pydantic import JsonValue

from memloop.wire.chat import Json
from memloop.wire.errors import EngineError
from memloop_clients.dialects import ENDPOINTS, messages_of
from memloop_clients.learning import Learned

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
    return Learned(ENDPOINTS["vllm"], below=nothing, beside=nothing)


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
