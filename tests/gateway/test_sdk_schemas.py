"""Every answer of the three APIs against the models of the ``openai`` and ``anthropic`` packages, field by field.

``pytest -s`` prints the number of fields compared. The zod schemas of Vercel's AI SDK: ``tests/clients``.
"""

from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from anthropic.types import ErrorResponse, Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.shared import ErrorObject
from pydantic import BaseModel

from tests.fakes.recall_store import FakeStore
from tests.fakes.streaming_engine import FakeEngine
from tests.gateway.file_searches import KEYS, searches
from tests.gateway.running import Gateway
from tests.gateway.schema_differences import Differences, left
from tests.gateway.transcripts import Api, Transcript, transcripts


class OpenAIError(BaseModel):
    """The body around OpenAI's error."""

    error: ErrorObject


WHOLE: Final[Mapping[Api, Any]] = {"chat": ChatCompletion, "responses": Response, "messages": Message}
EVENT: Final[Mapping[Api, Any]] = {
    "chat": ChatCompletionChunk,
    "responses": ResponseStreamEvent,
    "messages": RawMessageStreamEvent,
}
_THINKING: Final = "thinking, as vLLM, SGLang and DeepSeek have it; the API itself shows none"
_ENGINES: Final = "an engine's own, which the chat API passes on"
_REFERENCE: Final = "the API's reference has it, this version of the package has not"
UNKNOWN: Final = {
    **dict.fromkeys(
        ("ChatCompletion.memory", "ChatCompletionChunk.memory", "Response.memory", "Message.memory"),
        "the memory's report",
    ),
    "RawMessageDeltaEvent.memory": "the memory's report",
    **dict.fromkeys(
        (
            f"{model}.{name}"
            for model in ("ChatCompletion", "ChatCompletionChunk")
            for name in ("prompt_logprobs", "prompt_token_ids", "kv_transfer_params")
        ),
        _ENGINES,
    ),
    **dict.fromkeys(("Choice.stop_reason", "Choice.token_ids"), _ENGINES),
    "ChatCompletionMessage.reasoning": _THINKING,
    "ChatCompletionMessage.reasoning_content": _THINKING,
    "ChoiceDelta.reasoning_content": _THINKING,
    "Response.store": _REFERENCE,
    "ResponseFunctionCallArgumentsDoneEvent.name": _REFERENCE,
    "ResponseCustomToolCall.status": _REFERENCE,
    **dict.fromkeys(("Logprob.bytes", "LogprobTopLogprob.bytes"), "the same entry as in the part of the finished item"),
    **dict.fromkeys(
        (f"{kind}ErrorObject.details" for kind in ("InvalidRequest", "RateLimit", "API")),
        "where the package's errors look for an error_code",
    ),
}
"""Fields that no model of the packages has, with the reason for each."""
NULLS: Final = {
    **dict.fromkeys(
        (f"ChatCompletionMessage.{name}" for name in ("annotations", "audio", "function_call")), f"vLLM's: {_ENGINES}"
    ),
    "CompletionUsage.prompt_tokens_details": f"vLLM's: {_ENGINES}",
    **dict.fromkeys(
        (
            "Choice.logprobs",
            "Choice.finish_reason",
            "ChoiceLogprobs.refusal",
            "ChatCompletionMessage.content",
            "ChatCompletionMessage.refusal",
            "ChatCompletionChunk.usage",
            *(f"{model}.system_fingerprint" for model in ("ChatCompletion", "ChatCompletionChunk")),
            *(f"{model}.service_tier" for model in ("ChatCompletion", "ChatCompletionChunk")),
            "ErrorObject.param",
        ),
        "nullable in the reference of chat completions",
    ),
    **dict.fromkeys(
        (
            *(f"Response.{name}" for name in ("error", "incomplete_details", "instructions", "temperature", "top_p")),
            *(f"Response.{name}" for name in ("conversation", "previous_response_id", "max_output_tokens")),
            *(f"Response.{name}" for name in ("max_tool_calls", "safety_identifier", "service_tier")),
            *(f"Response.{name}" for name in ("prompt_cache_key", "prompt_cache_retention")),
            *(f"Reasoning.{name}" for name in ("effort", "summary")),
            *(f"FunctionTool.{name}" for name in ("description", "strict")),
        ),
        "nullable in the reference of responses",
    ),
    **dict.fromkeys(("Response.usage", "Response.user"), "null in the reference's own examples"),
    **dict.fromkeys(("Message.stop_reason", "Message.stop_sequence", "Delta.stop_sequence"), "nullable in Anthropic's"),
}
"""Nulls where the packages let the field be absent: the public API sends a null there too."""
UNKNOWN_STORED: Final = {
    "Response.store": _REFERENCE,
    "VectorStore.description": _REFERENCE,
    **dict.fromkeys(
        (
            *(f"AsyncCursorPage.{name}" for name in ("object", "first_id", "last_id")),
            *(f"AsyncConversationCursorPage.{name}" for name in ("object", "first_id")),
            *(f"AsyncPage.{name}" for name in ("search_query", "has_more", "next_page")),
        ),
        "a list's field that the package does not use",
    ),
}
NULLS_STORED: Final = {
    **{place: why for place, why in NULLS.items() if place.startswith(("Response.", "Reasoning."))},
    "FileObject.status_details": "the API sends it, null without an error",
    **dict.fromkeys(("VectorStore.expires_after", "VectorStore.expires_at"), "the API sends both, null without an end"),
    "VectorStoreFile.last_error": "nullable in the reference",
}


def compared(transcript: Transcript, found: Differences) -> None:
    """Compare each body of an answer."""
    for body in transcript.bodies:
        if isinstance(body.get("error"), dict) and body.get("object") != "response":
            found.compare(ErrorResponse if transcript.api == "messages" else OpenAIError, body)
        elif body.get("type") != "ping":
            found.compare((EVENT if transcript.streamed else WHOLE)[transcript.api], body)


async def test_all_that_is_sent_fits_the_models_of_the_sdks(
    gateway: Gateway, engine: FakeEngine, store: FakeStore
) -> None:
    found, bodies = Differences(), 0
    async for transcript in transcripts(gateway, engine, store):
        bodies += len(transcript.bodies)
        compared(transcript, found)
    print(f"\n{found.fields} fields of {bodies} bodies compared; unknown to the SDKs: {dict(found.unknown)}")
    print(f"nulls: {dict(found.nulls)}")
    assert not found.wrong, "\n".join(found.wrong)
    assert left(found.unknown, UNKNOWN) == (set(), set())
    assert left(found.nulls, NULLS) == (set(), set())


@pytest.mark.parametrize(
    ("changed", "group", "place"),
    [
        ({"content": [{"type": "text", "text": "Rex.", "citations": None}]}, "nulls", "TextBlock.citations"),
        ({"content": [{"type": "text", "text": "Rex.", "colour": "red"}]}, "unknown", "TextBlock.colour"),
        ({"content": [{"type": "text", "text": 7}]}, "wrong", "Message content.TextBlock.text"),
        ({"usage": {"input_tokens": "7", "output_tokens": 1}}, "wrong", "Message usage.input_tokens"),
    ],
)
def test_a_difference_is_found(changed: dict[str, object], group: str, place: str) -> None:
    message: dict[str, object] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": "end_turn",
    }
    found = Differences()
    found.compare(Message, {**message, "usage": {"input_tokens": 7, "output_tokens": 1}, **changed})
    assert [name.partition(":")[0] for name in getattr(found, group)] == [place]


async def test_what_is_stored_fits_the_models_of_the_sdk(redis_url: str, tmp_path: Path) -> None:
    found = Differences()

    async def took(asked: Awaitable[Any]) -> Any:
        answer = await asked
        parsed = answer.parse()
        found.compare(type(parsed), answer.http_response.json())
        return parsed

    async with searches(redis_url, tmp_path, lambda _: "The key hangs behind the lifebuoy.") as it, it.working():
        raw = it.sdk.with_raw_response
        expiry: Any = {"anchor": "created_at", "seconds": 7200}
        file = await took(raw.files.create(file=("a.txt", KEYS.encode()), purpose="assistants", expires_after=expiry))
        store = await took(raw.vector_stores.create(name="notes", metadata={"topic": "keys"}))
        batch = await took(raw.vector_stores.file_batches.create(store.id, file_ids=[file.id]))
        await it.indexed(store.id, file.id)
        in_store: Any = {"vector_store_id": store.id}
        await took(raw.vector_stores.file_batches.retrieve(batch.id, **in_store))
        await took(raw.vector_stores.file_batches.list_files(batch.id, **in_store))
        await took(raw.vector_stores.file_batches.cancel(batch.id, **in_store))
        await took(raw.vector_stores.files.create(store.id, file_id=file.id, attributes={"kind": "key"}))
        await it.indexed(store.id, file.id)
        for asked in (
            raw.files.list(),
            raw.files.retrieve(file.id),
            raw.vector_stores.list(),
            raw.vector_stores.retrieve(store.id),
            raw.vector_stores.update(store.id, name="keys"),
            raw.vector_stores.search(store.id, query="Where is the key?"),
            raw.vector_stores.files.list(store.id),
            raw.vector_stores.files.retrieve(file.id, vector_store_id=store.id),
            raw.vector_stores.files.update(file.id, vector_store_id=store.id, attributes={"kind": "tea"}),
            raw.models.list(),
        ):
            await took(asked)
        tool: Any = {"type": "file_search", "vector_store_ids": [store.id], "max_num_results": 3}
        shown: Any = ["file_search_call.results"]
        talk = await took(raw.conversations.create(items=[{"role": "user", "content": "One."}], metadata={"a": "b"}))
        made = await took(
            raw.responses.create(
                model="m", input="Where is the key?", tools=[tool], include=shown, conversation=talk.id
            )
        )
        late = await took(raw.responses.create(model="m", input="Hi.", background=True))
        items = (await took(raw.conversations.items.list(talk.id))).data
        for asked in (
            raw.responses.retrieve(made.id),
            raw.responses.retrieve(late.id),
            raw.responses.input_items.list(made.id),
            raw.responses.input_tokens.count(model="m", input="Hi."),
            raw.conversations.retrieve(talk.id),
            raw.conversations.update(talk.id, metadata={"a": "c"}),
            raw.conversations.items.create(talk.id, items=[{"role": "user", "content": "Two."}]),
            *(raw.conversations.items.retrieve(item.id, conversation_id=talk.id) for item in items),
            raw.conversations.items.delete(items[0].id, conversation_id=talk.id),
            raw.conversations.delete(talk.id),
            raw.vector_stores.files.delete(file.id, vector_store_id=store.id),
            raw.vector_stores.delete(store.id),
            raw.files.delete(file.id),
        ):
            await took(asked)
    print(f"\n{found.fields} fields compared; unknown to the SDK: {dict(found.unknown)}; nulls: {dict(found.nulls)}")
    assert not found.wrong, "\n".join(found.wrong)
    assert left(found.unknown, UNKNOWN_STORED) == (set(), set())
    assert left(found.nulls, NULLS_STORED) == (set(), set())
