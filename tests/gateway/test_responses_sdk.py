"""OpenAI's own client against ``/v1/responses``, over an engine that speaks only chat completions."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError
from openai.types.responses import (
    FunctionToolParam,
    Response,
    ResponseCompletedEvent,
    ResponseFailedEvent,
    ResponseIncompleteEvent,
    ResponseStreamEvent,
)
from pydantic import BaseModel

from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import MODEL, Cuts, FakeEngine, Hangs, Refuses, Says
from tests.gateway.running import Gateway

WEATHER: FunctionToolParam = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
CALLS = Says(tool_calls=[CALL], finish_reason="tool_calls")


class City(BaseModel):
    """What the model is to give."""

    city: str


@pytest.fixture
async def sdk(gateway: Gateway) -> AsyncGenerator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=gateway.url + "/v1", api_key="unused", max_retries=0) as client:
        yield client


async def events_of(sdk: AsyncOpenAI, **fields: Any) -> list[ResponseStreamEvent]:
    """The events of a streamed response, whose numbers are in order."""
    events = [event async for event in await sdk.responses.create(model=MODEL, stream=True, **fields)]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return events


def ended(events: list[ResponseStreamEvent]) -> Response:
    """The response in a stream's last event."""
    last = events[-1]
    assert isinstance(last, ResponseCompletedEvent | ResponseIncompleteEvent | ResponseFailedEvent)
    return last.response


async def test_a_string_is_answered(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    answer = await sdk.responses.create(model=MODEL, input="Hi.", instructions="Be brief.")
    assert (answer.output_text, answer.status, answer.object) == ("Hello.", "completed", "response")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (7, 3, 10)
    assert engine.last.path == "chat/completions"
    assert engine.last.json["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi."},
    ]


async def test_neither_input_nor_instructions_are_refused(sdk: AsyncOpenAI) -> None:
    with pytest.raises(BadRequestError) as refused:
        await sdk.responses.create(model=MODEL)
    assert refused.value.code == "missing_required_parameter"


async def test_a_stream_has_the_public_apis_events_in_order(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Says(pieces=["Hel", "lo."]))
    events = await events_of(sdk, input="Hi.")
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    final = ended(events)
    assert final.output_text == "Hello."
    assert final.usage is not None
    assert final.usage.total_tokens == 10


async def test_a_streamed_function_call_has_its_events(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(CALLS)
    events = await events_of(sdk, input="Weather?", tools=[WEATHER])
    assert [event.type for event in events][2:] == [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    call = ended(events).output[0]
    assert call.type == "function_call"
    assert (call.call_id, call.name, call.arguments) == ("call_1", "weather", '{"city":"Oslo"}')
    assert engine.last.json["tools"][0]["function"]["name"] == "weather"


async def test_an_answer_is_parsed_into_a_model(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Says('{"city": "Oslo"}'))
    answer = await sdk.responses.parse(model=MODEL, input="Where?", text_format=City)
    assert answer.output_parsed == City(city="Oslo")
    form = engine.last.json["response_format"]
    assert (form["type"], form["json_schema"]["name"], form["json_schema"]["strict"]) == ("json_schema", "City", True)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_loop_goes_on_by_the_previous_responses_id(
    sdk: AsyncOpenAI, engine: FakeEngine, streamed: bool
) -> None:
    engine.will(CALLS, Says("Rain in Oslo."), Says("An umbrella."))
    if streamed:
        first = ended(await events_of(sdk, input="Weather in Oslo?", tools=[WEATHER]))
    else:
        first = await sdk.responses.create(model=MODEL, input="Weather in Oslo?", tools=[WEATHER])
    output: Any = [{"type": "function_call_output", "call_id": "call_1", "output": "rain"}]
    second = await sdk.responses.create(
        model=MODEL, input=output, previous_response_id=first.id, tools=[WEATHER], instructions="Now be kind."
    )
    third = await sdk.responses.create(model=MODEL, input="What to take?", previous_response_id=second.id)
    assert third.output_text == "An umbrella."
    assert [message["role"] for message in engine.last.json["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert engine.last.json["messages"][1]["tool_calls"] == [CALL]
    assert engine.last.json["messages"][2]["content"] == "rain"


async def test_a_loop_that_sends_its_items_back_needs_no_state(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(CALLS, Says("Rain."))
    items: list[Any] = [{"role": "user", "content": "Weather in Oslo?"}]
    first = await sdk.responses.create(model=MODEL, input=items, tools=[WEATHER], store=False)
    items += first.output
    items.append({"type": "function_call_output", "call_id": "call_1", "output": "rain"})
    second = await sdk.responses.create(model=MODEL, input=items, tools=[WEATHER], store=False)
    assert second.output_text == "Rain."
    assert [message["role"] for message in engine.last.json["messages"]] == ["user", "assistant", "tool"]


async def test_a_response_is_retrieved_listed_and_deleted(sdk: AsyncOpenAI) -> None:
    made = await sdk.responses.create(model=MODEL, input="Hi.", metadata={"topic": "greeting"})
    found = await sdk.responses.retrieve(made.id)
    assert (found.output_text, found.metadata) == ("Hello.", {"topic": "greeting"})
    items: list[Any] = [item async for item in sdk.responses.input_items.list(made.id)]
    assert [item.content[0].text for item in items] == ["Hi."]
    await sdk.responses.delete(made.id)
    for again in (sdk.responses.retrieve(made.id), sdk.responses.delete(made.id)):
        with pytest.raises(NotFoundError):
            await again


async def test_a_response_that_is_not_stored_cannot_be_retrieved(sdk: AsyncOpenAI) -> None:
    made = await sdk.responses.create(model=MODEL, input="Hi.", store=False)
    with pytest.raises(NotFoundError):
        await sdk.responses.retrieve(made.id)
    with pytest.raises(BadRequestError) as refused:
        await sdk.responses.create(model=MODEL, input="Again.", previous_response_id=made.id)
    assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")


async def test_the_engines_refusal_is_an_error_of_the_sdk(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Refuses(400, {"error": {"message": "too long", "type": "invalid_request_error", "code": "length"}}))
    with pytest.raises(BadRequestError, match="too long"):
        await sdk.responses.create(model=MODEL, input="Hi.")


async def test_a_stream_that_breaks_off_ends_as_failed(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Cuts("Hel"))
    final = ended(await events_of(sdk, input="Hi."))
    assert (final.status, final.output_text) == ("failed", "Hel")
    assert final.error is not None
    assert final.error.code == "server_error"
    with pytest.raises(NotFoundError):
        await sdk.responses.retrieve(final.id)


async def test_an_answer_at_its_token_limit_is_incomplete(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Says("Hel", finish_reason="length"), Says("Hel", finish_reason="length"))
    whole = await sdk.responses.create(model=MODEL, input="Hi.", max_output_tokens=1)
    streamed = ended(await events_of(sdk, input="Hi.", max_output_tokens=1))
    for answer in (whole, streamed):
        assert answer.status == "incomplete"
        assert answer.incomplete_details is not None
        assert answer.incomplete_details.reason == "max_output_tokens"


async def test_closing_a_stream_aborts_the_engine_and_keeps_nothing(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Hangs("Hel"))
    stream = await sdk.responses.create(model=MODEL, input="Hi.", stream=True)
    response_id = ""
    async for event in stream:
        if event.type == "response.created":
            response_id = event.response.id
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    await engine.until_running(0)
    assert engine.aborted == 1
    with pytest.raises(NotFoundError):
        await sdk.responses.retrieve(response_id)


async def test_the_tokens_of_a_prompt_are_counted_with_what_it_continues(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    made = await sdk.responses.create(model=MODEL, input="A rather long question. " * 20)
    short = await sdk.responses.input_tokens.count(model=MODEL, input="Hi.")
    long = await sdk.responses.input_tokens.count(model=MODEL, input="Hi.", previous_response_id=made.id)
    assert (short.object, short.input_tokens > 0) == ("response.input_tokens", True)
    assert long.input_tokens > short.input_tokens + 60
    assert len(engine.received) == 1


async def test_a_response_has_memory_if_it_asks(
    sdk: AsyncOpenAI, gateway: Gateway, engine: FakeEngine, store: FakeStore
) -> None:
    await sdk.responses.create(model=MODEL, input="My dog is Rex.", extra_body={"memory": {"user_id": "u1"}})
    (turn,) = await gateway.queued_turns()
    assert [source.content for source in turn] == ["My dog is Rex.", "Hello."]
    store.finds = [memory("m1", "The dog is called Rex.")]
    answer = await sdk.responses.create(model=MODEL, input="Dog?", extra_body={"memory": {"user_id": "u1"}})
    assert "Rex" in str(engine.last.json["messages"])
    assert (answer.model_extra or {})["memory"]["retrieved"]


async def test_a_user_alone_gives_no_memory(sdk: AsyncOpenAI, gateway: Gateway) -> None:
    answer = await sdk.responses.create(model=MODEL, input="My dog is Rex.", user="u1")
    assert "memory" not in (answer.model_extra or {})
    assert await gateway.queued_turns() == []
