"""OpenAI's own client: ``file_search`` in responses, on the real memory store, over a scripted engine."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest
from openai import BadRequestError, ConflictError, UnprocessableEntityError
from openai.types.responses import Response, ResponseFileSearchToolCall, ResponseOutputMessage, ResponseOutputText

from tests.fakes.job_engine import Body, Reply
from tests.gateway.file_searches import KEYS, TEA, Searches, searches
from tests.gateway.redis_view import keys
from tests.gateway.rig import eventually

ANSWER = "Behind the red lifebuoy [1]. Nothing else is known [9]."
QUESTION = "Where does the spare key of the boat house hang?"
EVENTS = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.file_search_call.in_progress",
    "response.file_search_call.searching",
    "response.file_search_call.completed",
    "response.output_item.done",
    "response.output_item.added",
    "response.content_part.added",
]


def answer(body: Body) -> Reply:
    """The engine's answer to everything."""
    del body
    return ANSWER


@pytest.fixture
async def it(redis_url: str, tmp_path: Path) -> AsyncGenerator[Searches]:
    """A gateway with a worker."""
    async with searches(redis_url, tmp_path, answer) as found, found.working():
        yield found


async def asked(it: Searches, store_id: str, text: Any = QUESTION, /, **fields: Any) -> Response:
    """The response to a question with a search."""
    tool = {"type": "file_search", "vector_store_ids": [store_id], **fields.pop("tool", {})}
    return cast(Response, await it.sdk.responses.create(model="m", input=text, tools=cast(Any, [tool]), **fields))


def parts(response: Response) -> tuple[ResponseFileSearchToolCall, ResponseOutputText]:
    """The search and the answer of a response."""
    search, message = response.output
    assert isinstance(search, ResponseFileSearchToolCall)
    assert isinstance(message, ResponseOutputMessage)
    [text] = message.content
    assert isinstance(text, ResponseOutputText)
    return search, text


async def test_the_engine_gets_the_passages_and_the_answer_cites_the_file(it: Searches) -> None:
    store_id, [keys, _] = await it.store_of(KEYS, TEA)
    response = await asked(it, store_id)
    search, text = parts(response)
    assert (search.status, search.queries, search.results) == ("completed", [QUESTION], None)
    assert [one.to_dict() for one in text.annotations] == [
        {"type": "file_citation", "file_id": keys, "filename": "0.txt", "index": ANSWER.index("[1]")}
    ]
    [message] = it.engine.calls[-1]["messages"]
    assert "tools" not in it.engine.calls[-1]
    assert message["role"] == "user"
    assert KEYS in message["content"]
    assert message["content"].endswith(QUESTION)
    assert message["content"].index(KEYS) < message["content"].index(TEA)


async def test_the_results_are_shown_when_they_are_included(it: Searches) -> None:
    store_id, [keys, _] = await it.store_of(KEYS, TEA, attributes={"year": 2026})
    response = await asked(it, store_id, include=["file_search_call.results"], tool={"max_num_results": 1})
    [result] = parts(response)[0].results or []
    assert (result.file_id, result.filename, result.text, result.attributes) == (keys, "0.txt", KEYS, {"year": 2026})
    stored = await it.sdk.responses.retrieve(response.id)
    assert stored.output == response.output


async def test_a_stream_has_the_searchs_events_and_those_of_its_citations(it: Searches) -> None:
    store_id, [keys] = await it.store_of(KEYS)
    tool: Any = {"type": "file_search", "vector_store_ids": [store_id]}
    stream = await it.sdk.responses.create(model="m", input=QUESTION, tools=[tool], stream=True)
    events: list[Any] = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    types = [event.type for event in events]
    assert types[: len(EVENTS)] == EVENTS
    [cited] = [event for event in events if event.type == "response.output_text.annotation.added"]
    assert (cited.annotation.file_id, cited.annotation_index, cited.output_index) == (keys, 0, 1)
    assert types.index(cited.type) < types.index("response.output_text.done")
    assert {event.item_id for event in events[3:6]} == {events[2].item.id}
    search, text = parts(events[-1].response)
    assert (search.id, [one.type for one in text.annotations]) == (events[2].item.id, ["file_citation"])


async def test_filters_and_the_threshold_apply(it: Searches) -> None:
    store_id, [_, tea] = await it.store_of(KEYS, TEA)
    await it.sdk.vector_stores.files.update(tea, vector_store_id=store_id, attributes={"kind": "tea"})
    only = {"filters": {"type": "eq", "key": "kind", "value": "tea"}}
    response = await asked(it, store_id, tool=only, include=["file_search_call.results"])
    assert [one.file_id for one in parts(response)[0].results or []] == [tea]
    none = await asked(it, store_id, tool={"ranking_options": {"score_threshold": 1}})
    assert parts(none)[1].annotations == []
    assert it.engine.calls[-1]["messages"] == [{"role": "user", "content": QUESTION}]


async def test_a_later_response_continues_one_with_a_search(it: Searches) -> None:
    store_id, _ = await it.store_of(KEYS)
    first = await asked(it, store_id)
    await it.sdk.responses.create(model="m", input="Sure?", previous_response_id=first.id)
    said = [message["content"] for message in it.engine.calls[-1]["messages"]]
    assert said == [QUESTION, ANSWER, "Sure?"]


async def test_tool_choice_none_searches_nothing(it: Searches) -> None:
    store_id, _ = await it.store_of(KEYS)
    response = await asked(it, store_id, tool_choice="none")
    assert [item.type for item in response.output] == ["message"]
    assert it.engine.calls[-1]["messages"] == [{"role": "user", "content": QUESTION}]


async def test_a_background_response_searches_in_the_worker_and_has_the_same_events(it: Searches) -> None:
    store_id, [keys] = await it.store_of(KEYS)
    queued = await asked(it, store_id, background=True)

    async def over() -> bool:
        return (await it.sdk.responses.retrieve(queued.id)).status not in ("queued", "in_progress")

    await eventually(over)
    done = await it.sdk.responses.retrieve(queued.id)
    assert (done.status, [one.file_id for one in cast(Any, parts(done)[1].annotations)]) == ("completed", [keys])
    events = [event async for event in await it.sdk.responses.retrieve(queued.id, stream=True, starting_after=2)]
    assert [event.type for event in events][: len(EVENTS) - 2] == EVENTS[2:]


async def test_a_wrong_search_is_refused(it: Searches) -> None:
    store_id, _ = await it.store_of(KEYS)
    wrong: list[dict[str, Any]] = [
        {"max_num_results": 51},
        {"max_num_results": "5"},
        {"ranking_options": {"score_threshold": "0.5"}},
        {"vector_store_ids": []},
    ]
    for tool in wrong:
        with pytest.raises(UnprocessableEntityError):
            await asked(it, store_id, tool=tool)
    with pytest.raises(BadRequestError, match="web_search_preview"):
        await it.sdk.responses.create(model="m", input="a", tools=[{"type": "web_search_preview"}])
    one: Any = {"type": "file_search", "vector_store_ids": [store_id]}
    with pytest.raises(BadRequestError, match="once"):
        await it.sdk.responses.create(model="m", input="a", tools=[one, one])


async def test_an_expired_vector_store_is_refused(it: Searches) -> None:
    store_id, _ = await it.store_of(KEYS)
    await it.sdk.vector_stores.update(store_id, expires_after={"anchor": "last_active_at", "days": 1})
    [record] = await keys(it.gateway.redis, f"*:vector-store:*{store_id}")
    await it.gateway.redis.hset(record, "active", "1000")  # pyright: ignore
    with pytest.raises(ConflictError):
        await asked(it, store_id)
