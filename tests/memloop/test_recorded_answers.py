"""Stand-ins of llama.cpp and vLLM answer field by field as the programs did, whose answers are all understood.

``make record-real-engines`` records the programs.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import orjson
import pytest

from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, EngineError
from memloop_clients.engine import engine_error, read_completion
from memloop_clients.refusals import Overflow, overflow_of, refuses_format
from memloop_clients.reply_stream import ReplyStream
from tests.fakes.recorded_answers import DONE, NO_ROOM, Recorded, answers_of, differences, read
from tests.fakes.strict_endpoint import strict_endpoint
from tests.fakes.strict_specs import SPECS
from tests.fakes.windowed_engine import WindowedEngine, windowed_engine

PROGRAMS: Final = ("llama.cpp", "vllm")
CHATS: Final = ("a reply", "a stream", "a stream with its usage", "a call", "a call as a stream")
OF_A_WINDOW: Final = ("its models", "too long", NO_ROOM)


@asynccontextmanager
async def windowed(name: Any) -> AsyncGenerator[str]:
    async with windowed_engine(WindowedEngine(2048, states=name, cuts="never")) as engine:
        yield engine.url.removesuffix("/v1")


@asynccontextmanager
async def strict(name: str) -> AsyncGenerator[str]:
    async with strict_endpoint(next(spec for spec in SPECS if spec.name == name)) as endpoint:
        yield endpoint.url.removesuffix("/v1")


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_stand_in_answers_in_the_shapes_of_the_program(name: str) -> None:
    recorded = read(name)
    for standing_in, cases in ((windowed, (*CHATS, *OF_A_WINDOW)), (strict, ("its models", *CHATS))):
        async with AsyncExitStack() as stack:
            given = await answers_of(await stack.enter_async_context(standing_in(name)), only=cases)
        found = {case: list(differences(recorded[case], given[case])) for case in cases}
        assert found == {case: [] for case in cases}


def refusal(name: str, case: str) -> EngineError:
    """A recorded refusal with numbers in it, as the client reads it."""
    refused = Recorded(name).refusal(case, *({"llama.cpp": (9000, 2048), "vllm": (2048, 9000, 9000)}[name]))
    error = engine_error(refused.status, orjson.dumps(refused.body), {})
    assert isinstance(error, EngineError)
    return error


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_prompt_that_a_program_refuses_as_too_long_is_known_as_such(name: str) -> None:
    error = refusal(name, "too long")
    assert error.code == CONTEXT_LENGTH_EXCEEDED
    assert overflow_of(error.message) == Overflow(9000, None, 2048)


@pytest.mark.parametrize(
    "case", ["a schema that is none", "a schema with an unknown reference", "a format that is none"]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_format_that_a_program_refuses_is_known_as_such(name: str, case: str) -> None:
    assert refuses_format(refusal(name, case), {"response_format": {"type": "json_schema"}})


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_whole_reply_of_a_program_is_read(name: str) -> None:
    answers = read(name)
    said, called = (read_completion(answers[case]["body"]) for case in ("a reply", "a call"))
    assert (said.content, said.finish_reason, said.tool_calls) == ("…", "length", ())
    assert [call.function.arguments for call in called.tool_calls] == ["…"]


@pytest.mark.parametrize("case", ["a stream", "a stream with its usage", "a call as a stream"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_stream_of_a_program_is_read_to_its_end(name: str, case: str) -> None:
    stream = ReplyStream(("…",))
    for event in read(name)[case]["body"]:
        text = event if event == DONE else orjson.dumps(event).decode()
        list(stream.read(f"data: {text}\n\n".encode()))
    assert (stream.is_answered, bool(stream.failed)) == (True, False)
