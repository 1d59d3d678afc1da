"""OpenAI's own client against ``/v1/conversations``, and responses that continue a conversation."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError, RateLimitError, UnprocessableEntityError
from openai.types.responses import Response

from gateway.settings import GatewaySettings
from tests.fakes.streaming_engine import MODEL, FakeEngine, Says
from tests.gateway.api_rig import api
from tests.gateway.redis_view import connected, keys, keys_that_hold
from tests.gateway.rig import script
from tests.gateway.running import Gateway, running_gateway

SECRET = "quagga-4711"
PATH = "/v1/conversations"


def client(gateway: Gateway) -> AsyncOpenAI:
    """OpenAI's client of the gateway."""
    return AsyncOpenAI(base_url=gateway.url + "/v1", api_key="unused", max_retries=0)


@pytest.fixture
async def sdk(gateway: Gateway) -> AsyncGenerator[AsyncOpenAI]:
    async with client(gateway) as opened:
        yield opened


@pytest.fixture
async def small(settings: GatewaySettings) -> AsyncGenerator[AsyncOpenAI]:
    """A gateway with room for two conversations of five items."""
    changes = {"tenant_conversations": 2, "conversation_items": 5, "tenant_conversation_bytes": 20_000}
    async with running_gateway(settings, **changes) as running, client(running) as opened:
        yield opened


def said(*texts: str) -> Any:
    """Messages of the user."""
    return [{"type": "message", "role": "user", "content": text} for text in texts]


async def texts_of(sdk: AsyncOpenAI, conversation: str) -> list[str]:
    """The texts of all messages, oldest first, by pages of two."""
    pages = sdk.conversations.items.list(conversation, order="asc", limit=2)
    return [item.content[0].text async for item in pages if item.type == "message"]  # type: ignore[union-attr]


async def test_a_conversation_is_made_read_changed_and_deleted(sdk: AsyncOpenAI) -> None:
    made = await sdk.conversations.create(items=said("One."), metadata={"topic": "tea"})
    assert (made.object, made.metadata) == ("conversation", {"topic": "tea"})
    assert await sdk.conversations.retrieve(made.id) == made
    changed = await sdk.conversations.update(made.id, metadata={"topic": "coffee"})
    assert (changed.id, changed.created_at, changed.metadata) == (made.id, made.created_at, {"topic": "coffee"})
    gone = await sdk.conversations.delete(made.id)
    assert (gone.id, gone.deleted, gone.object) == (made.id, True, "conversation.deleted")
    with pytest.raises(NotFoundError) as missing:
        await sdk.conversations.retrieve(made.id)
    assert missing.value.code == "conversation_not_found"


async def test_items_are_added_listed_by_pages_read_and_deleted(sdk: AsyncOpenAI) -> None:
    made = await sdk.conversations.create(items=said("1"))
    added = await sdk.conversations.items.create(made.id, items=said("2", "3", "4", "5"))
    assert [len(added.data), added.has_more, added.first_id] == [4, False, added.data[0].id]
    assert await texts_of(sdk, made.id) == ["1", "2", "3", "4", "5"]
    newest = await sdk.conversations.items.list(made.id, limit=2)
    assert newest.has_more
    assert [item.content[0].text for item in newest.data] == ["5", "4"]  # type: ignore[union-attr]
    one = await sdk.conversations.items.retrieve(str(added.data[1].id), conversation_id=made.id)
    assert one == added.data[1]
    kept = await sdk.conversations.items.delete(str(one.id), conversation_id=made.id)
    assert kept == made
    assert await texts_of(sdk, made.id) == ["1", "2", "4", "5"]
    for call in (sdk.conversations.items.retrieve, sdk.conversations.items.delete):
        with pytest.raises(NotFoundError):
            await call(str(one.id), conversation_id=made.id)


async def test_a_page_after_an_unknown_item_is_not_found(sdk: AsyncOpenAI) -> None:
    made = await sdk.conversations.create(items=said("1"))
    with pytest.raises(NotFoundError):
        await sdk.conversations.items.list(made.id, after="msg_0")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("stores", [False, True])
async def test_responses_continue_a_conversation_and_add_to_it(
    sdk: AsyncOpenAI, engine: FakeEngine, streamed: bool, stores: bool
) -> None:
    engine.will(Says("Rex."), Says("A dog."))
    made = await sdk.conversations.create(items=said("My dog is called Rex."))
    for text in ("Its name?", "What is it?"):
        fields: Any = {"model": MODEL, "input": text, "conversation": made.id, "store": stores}
        if streamed:
            async with sdk.responses.stream(**fields) as stream:
                answer = cast(Response, await stream.get_final_response())
        else:
            answer = cast(Response, await sdk.responses.create(**fields))
        assert answer.conversation is not None
        assert (answer.conversation.id, answer.to_dict()["store"]) == (made.id, stores)
    said_to_engine = [message["content"] for message in engine.last.json["messages"]]
    assert said_to_engine == ["My dog is called Rex.", "Its name?", "Rex.", "What is it?"]
    assert await texts_of(sdk, made.id) == [*said_to_engine, "A dog."]


async def test_an_unknown_conversation_is_not_continued(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    for conversation in ("conv_1", "conv_" + "0" * 32, "", "resp_1", "x" * 5000):
        with pytest.raises(NotFoundError) as missing:
            await sdk.responses.create(model=MODEL, input="Hi.", conversation=conversation)
        assert missing.value.param == "conversation"
    assert engine.received == []


async def test_an_item_of_a_known_id_is_refused(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    made = await sdk.conversations.create(items=said("One."))
    [item] = (await sdk.conversations.items.list(made.id)).data
    again: Any = [{"type": "message", "role": "user", "id": item.id, "content": "Two."}]
    with pytest.raises(BadRequestError) as refused:
        await sdk.conversations.items.create(made.id, items=again)
    assert refused.value.code == "duplicate_item"
    with pytest.raises(BadRequestError) as refused:
        await sdk.responses.create(model=MODEL, input=again, conversation=made.id)
    assert refused.value.code == "duplicate_item"
    assert engine.received == []


async def test_bad_items_are_refused(sdk: AsyncOpenAI) -> None:
    bad: list[Any] = [said(*"x" * 21), [{"type": "computer_call"}], ["x"], [{"role": "user"}]]
    for items in bad:
        with pytest.raises((BadRequestError, UnprocessableEntityError)):
            await sdk.conversations.create(items=items)


async def test_conversations_have_a_most_number_and_most_items(small: AsyncOpenAI, engine: FakeEngine) -> None:
    made = [await small.conversations.create(items=said("1", "2", "3")) for _ in range(2)]
    with pytest.raises(RateLimitError) as many:
        await small.conversations.create()
    assert many.value.code == "conversation_quota_exceeded"
    await small.responses.create(model=MODEL, input="4", conversation=made[0].id)
    for call in (
        small.conversations.items.create(made[0].id, items=said("6")),
        small.responses.create(model=MODEL, input="6", conversation=made[0].id),
    ):
        with pytest.raises(BadRequestError) as long:
            await call
        assert long.value.code == "conversation_too_long"
    assert len(engine.received) == 1
    await small.conversations.delete(made[0].id)
    await small.conversations.create()


async def test_conversations_have_a_most_size_in_all(small: AsyncOpenAI) -> None:
    made = await small.conversations.create(items=said("x" * 15_000))
    for call in (
        small.conversations.create(items=said("x" * 5000)),
        small.responses.create(model=MODEL, input="x" * 5000, conversation=made.id),
    ):
        with pytest.raises(RateLimitError):
            await call
    [item] = (await small.conversations.items.list(made.id)).data
    await small.conversations.items.delete(str(item.id), conversation_id=made.id)
    await small.conversations.create(items=said("x" * 15_000))


async def test_deleted_conversations_leave_nothing_in_redis(sdk: AsyncOpenAI, redis_url: str) -> None:
    made = await sdk.conversations.create(items=said(SECRET), metadata={"user_id": "alice"})
    await sdk.responses.create(model=MODEL, input=SECRET, conversation=made.id, store=False, user="bob")
    await sdk.conversations.delete(made.id)
    async with connected(redis_url) as redis:
        assert await keys(redis, "*conversation*") == []


@pytest.mark.parametrize("by", ["metadata", "header", "response"])
async def test_an_erased_users_conversations_are_gone(redis_url: str, by: str) -> None:
    async with api(redis_url, script("Fine.")) as it:
        named = {"metadata": {"user_id": "alice"}} if by == "metadata" else {}
        headers = {"X-Memory-User-Id": "alice"} if by == "header" else {}
        made = (await it.call("POST", PATH, {"items": said(SECRET), **named}, headers=headers)).json["id"]
        if by == "response":
            fields = {"model": "m", "input": SECRET, "conversation": made, "user": "alice", "store": False}
            assert (await it.post("/v1/responses", fields)).status == 200
        kept = (await it.post(PATH, {"metadata": {"user_id": "bob"}})).json["id"]
        assert (await it.call("DELETE", "/v1/memory?user_id=alice")).status == 200
        assert ((await it.get(f"{PATH}/{made}")).status, (await it.get(f"{PATH}/{kept}")).status) == (404, 200)
        async with connected(redis_url) as redis:
            assert await keys_that_hold(redis, SECRET.encode()) == []


async def test_a_response_that_an_erasure_overtakes_adds_nothing(redis_url: str) -> None:
    async with api(redis_url, script(SECRET), hang_at=1) as it:
        made = (await it.post(PATH, {})).json["id"]
        fields = {"model": "m", "input": SECRET, "user": "alice", "conversation": made, "store": False}
        asking = asyncio.ensure_future(it.post("/v1/responses", fields))
        await it.rig.engine.hanging.wait()
        assert (await it.call("DELETE", "/v1/memory?user_id=alice")).status == 200
        it.rig.engine.let_go.set()
        assert (await asking).status == 200
        assert (await it.get(f"{PATH}/{made}/items")).json["data"] == []


async def test_secrets_are_redacted_before_they_are_kept(sdk: AsyncOpenAI, redis_url: str) -> None:
    card = "4111 1111 1111 1111"
    made = await sdk.conversations.create(items=said(f"My card: {card}"))
    await sdk.conversations.items.create(made.id, items=said(f"Again: {card}"))
    await sdk.responses.create(model=MODEL, input=f"Once more: {card}", conversation=made.id)
    assert len(await texts_of(sdk, made.id)) == 4
    async with connected(redis_url) as redis:
        assert await keys_that_hold(redis, card.encode()) == []


async def test_what_adds_to_a_conversation_keeps_it_for_longer(sdk: AsyncOpenAI, redis_url: str) -> None:
    made = await sdk.conversations.create(items=said("1"), metadata={"user_id": "alice"})
    async with connected(redis_url) as redis:
        parts = await keys(redis, "*conversation*")
        assert len(parts) == 5
        for part in parts:
            await redis.pexpire(part, 100_000)
        await sdk.responses.create(model=MODEL, input="2", conversation=made.id, user="bob")
        assert min([await redis.pttl(part) for part in parts]) > 100_000
