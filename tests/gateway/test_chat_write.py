"""What a chat gives the memory writer, and that it is durable before the client learns its id."""

import asyncio

from gateway.chat.memory import begin_turn
from gateway.memory import event_id
from gateway.settings import GatewaySettings
from memloop.wire.chat import ChatRequest
from memloop.wire.memory import MAX_TEXT_CHARS, Namespace
from tests.fakes.processes import PATIENCE_S
from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.redis_server import RedisServer
from tests.fakes.streaming_engine import MODEL, FakeEngine, Refuses, Says
from tests.gateway.running import CHAT, Gateway, question, running_gateway, said

WRITE = {"user_id": "u1", "mode": "write"}


async def test_writer_gets_the_newest_turn_and_the_answer_its_event_id(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Says("Noted."))
    answer = await gateway.chat("I moved to Oslo.", memory=WRITE)
    (turns,) = await gateway.queued_turns()
    assert said(turns) == [("user", "I moved to Oslo."), ("assistant", "Noted.")]
    event = await gateway.get(f"/v1/memory/events/{answer.json['memory']['write_event_id']}")
    assert event.json["status"] == "queued"


async def test_turns_of_earlier_requests_are_not_written_again(gateway: Gateway) -> None:
    messages: list[object] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Old."},
        {"role": "assistant", "content": "Older."},
        {"role": "user", "content": "First."},
        {"role": "user", "content": [{"type": "text", "text": "Second."}, {"type": "image_url", "image_url": {}}]},
    ]
    await gateway.post(CHAT, {"model": MODEL, "messages": messages, "memory": WRITE})
    (turns,) = await gateway.queued_turns()
    assert said(turns) == [("user", "First."), ("user", "Second."), ("assistant", "Hello.")]


async def test_recalled_memories_never_reach_the_writer(gateway: Gateway, engine: FakeEngine, store: FakeStore) -> None:
    store.finds = [memory("m1", "The user likes tea.")]
    await gateway.chat("Hi.", memory={"user_id": "u1"})
    assert "likes tea" in engine.last.raw.decode()
    (turns,) = await gateway.queued_turns()
    assert said(turns) == [("user", "Hi."), ("assistant", "Hello.")]


async def test_tool_call_writes_the_question_and_the_next_request_the_reply(
    gateway: Gateway, engine: FakeEngine
) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    engine.will(Says(tool_calls=[call], finish_reason="tool_calls"), Says("Rain in Oslo."))
    asked = [{"role": "user", "content": "I live in Oslo. Weather?"}]
    await gateway.post(CHAT, {"model": MODEL, "messages": asked, "memory": WRITE})
    looked_up = [
        *asked,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Rain."},
    ]
    await gateway.post(CHAT, {"model": MODEL, "messages": looked_up, "memory": WRITE})
    assert [said(turns) for turns in await gateway.queued_turns()] == [
        [("user", "I live in Oslo. Weather?")],
        [("assistant", "Rain in Oslo.")],
    ]


async def test_text_over_the_limit_of_a_turn_is_cut_into_turns_without_loss(gateway: Gateway) -> None:
    text = "x" * (MAX_TEXT_CHARS + 10)
    await gateway.chat(text, memory=WRITE)
    (turns,) = await gateway.queued_turns()
    assert [turn.role for turn in turns] == ["user", "user", "assistant"]
    assert turns[0].content + turns[1].content == text


async def test_nothing_is_written_in_mode_read(gateway: Gateway) -> None:
    answer = await gateway.chat(memory={"user_id": "u1", "mode": "read"})
    assert answer.json["memory"]["write_event_id"] is None
    assert await gateway.queued_turns() == []


async def test_nothing_is_written_when_the_engine_refuses(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Refuses(400, {"error": {"message": "no"}}))
    await gateway.chat(memory=WRITE)
    assert await gateway.queued_turns() == []


async def test_chat_answers_and_reports_a_lost_redis(settings: GatewaySettings) -> None:
    redis = RedisServer.start()
    own = GatewaySettings.model_validate({**settings.model_dump(), "redis_url": redis.url})
    async with running_gateway(own) as gateway:
        redis.stop()
        answer = await gateway.chat("Hi.", memory={"user_id": "u1"})
    assert answer.json["choices"][0]["message"]["content"] == "Hello."
    told = answer.json["memory"]
    assert {name: told[name] for name in ("retrieved", "write_event_id", "error")} == {
        "retrieved": [],
        "write_event_id": None,
        "error": "The queue of memory writes could not be read; this reply may lack turns that are not memories yet."
        " Queuing the memory write failed; this turn will not be remembered.",
    }


async def test_chat_is_not_held_up_by_a_redis_that_does_not_answer(settings: GatewaySettings) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    stuck = {"redis_url": f"redis://127.0.0.1:{port}", "redis_timeout_s": 300.0}
    soon = {"recall_timeout_s": 0.05, "enqueue_timeout_s": 0.05}
    own = GatewaySettings.model_validate({**settings.model_dump(), **stuck, **soon})
    async with server, running_gateway(own) as gateway, asyncio.timeout(PATIENCE_S):
        answer = await gateway.chat("Hi.", memory=WRITE)
    assert answer.status == 200
    late = "Queuing the memory write took more than 0.05 s; this turn may not be remembered."
    assert answer.json["memory"]["error"] == late


async def test_turn_that_is_queued_twice_is_written_once(gateway: Gateway) -> None:
    chat = ChatRequest.model_validate(question("I moved to Oslo.", memory=WRITE))
    namespace = Namespace(tenant="local", user_id="u1")
    turn = await begin_turn(
        gateway.chats, gateway.backend.models.chat, chat, namespace, event_id=event_id(namespace.lane(), "0" * 32)
    )
    first, second = [await turn.answered(gateway.chats, "Noted.", usage={}) for _ in range(2)]
    assert first == second
    assert len(await gateway.queued_turns()) == 1
