"""``/v1/chat/completions``, as a stream and as one answer."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import MODEL, USAGE, Cuts, FakeEngine, Hangs, Says, SendsBytes
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, Gateway, question, running_gateway, said

READWRITE = {"user_id": "u1"}
_DONE = b"data: [DONE]"


def _chunk(content: str, finish: str = "null") -> bytes:
    choice = f'{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":{finish}}}'
    head = '"id":"x","object":"chat.completion.chunk","created":1,"model":"m"'
    return f'data: {{{head},"choices":[{choice}]}}'.encode()


async def test_events_pass_through_byte_for_byte_without_a_user(gateway: Gateway, engine: FakeEngine) -> None:
    raw = b": hello\r\n\r\n" + _chunk("Hi", '"stop"') + b'\n\ndata: {"a":  1}\n\nevent: odd\ndata: x\ndata: y\n\n'
    raw += _DONE + b"\n\n"
    engine.will(SendsBytes([raw[:9], raw[9:30], raw[30:]], "text/event-stream"))
    assert (await gateway.chat(stream=True)).raw == raw


async def test_text_arrives_while_the_engine_is_still_writing(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Hangs("Hel"))
    async with gateway.http.post(gateway.url + CHAT, json=question(stream=True, memory=READWRITE)) as response:
        assert b"Hel" in await response.content.readany()
        assert engine.running == 1


async def test_memory_rides_on_the_usage_chunk(gateway: Gateway, engine: FakeEngine, store: FakeStore) -> None:
    store.finds = [memory("m1", "The user likes tea.")]
    engine.will(Says(pieces=["Hel", "lo."]))
    answer = await gateway.chat(stream=True, stream_options={"include_usage": True}, memory=READWRITE)
    assert answer.streamed_text == "Hello."
    assert answer.events[-1] == _DONE
    assert [chunk for chunk in answer.chunks if "memory" in chunk] == [answer.chunks[-1]]
    last = answer.chunks[-1]
    assert (last["choices"], last["usage"], last["memory"]["retrieved"]) == ([], USAGE, ["m1"])
    assert last["memory"]["write_event_id"].startswith("evt_")


async def test_memory_rides_on_the_last_choice_of_a_client_that_asked_for_no_usage(gateway: Gateway) -> None:
    answer = await gateway.chat(stream=True, memory=READWRITE)
    last = answer.chunks[-1]
    assert answer.events[-1] == _DONE
    assert [chunk["choices"][0]["finish_reason"] for chunk in answer.chunks] == [None, None, "stop"]
    assert [chunk for chunk in answer.chunks if "memory" in chunk] == [last]
    assert last["memory"]["write_event_id"].startswith("evt_")


async def test_writer_gets_the_streamed_text(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Says(pieces=["Wel", "come ", "to Øslo 🇳🇴"]))
    await gateway.chat("I moved.", stream=True, memory=READWRITE)
    (turns,) = await gateway.queued_turns()
    assert said(turns) == [("user", "I moved."), ("assistant", "Welcome to Øslo 🇳🇴")]


async def test_only_choice_0_is_remembered(gateway: Gateway, engine: FakeEngine) -> None:
    other = b'data: {"choices":[{"index":1,"delta":{"content":"No."},"finish_reason":"stop"}]}'
    events = [_chunk("Yes"), other, _chunk(".", '"stop"'), _DONE]
    engine.will(SendsBytes([b"\n\n".join(events) + b"\n\n"], "text/event-stream"))
    await gateway.chat(stream=True, memory=READWRITE)
    (turns,) = await gateway.queued_turns()
    assert turns[-1].content == "Yes."


async def test_engine_lost_in_mid_stream_is_an_error_event_and_the_end_and_nothing_is_written(
    gateway: Gateway, engine: FakeEngine
) -> None:
    engine.will(Cuts("Hel"))
    answer = await gateway.chat(stream=True, memory=READWRITE)
    assert answer.chunks[0]["choices"][0]["delta"]["content"] == "Hel"
    assert answer.events[-1].startswith(
        b'event: error\ndata: {"error":{"message":"the connection to the engine was lost"'
    )
    assert await gateway.metric('upstream_errors_total{kind="unavailable",model="fake-model"}') == 1
    assert await gateway.queued_turns() == []


async def test_engine_error_event_gets_openais_form_and_its_answer_is_not_written(
    gateway: Gateway, engine: FakeEngine
) -> None:
    broken = b'data: {"error":{"message":"out of memory","code":500}}'
    engine.will(SendsBytes([_chunk("Hel") + b"\n\n" + broken + b"\n\n" + _DONE + b"\n\n"], "text/event-stream"))
    answer = await gateway.chat(stream=True, memory=READWRITE)
    error = b'{"error":{"message":"out of memory","type":"upstream_error","param":null,"code":"500"}}'
    assert answer.events == [_chunk("Hel"), b"event: error\ndata: " + error, _DONE]
    assert await gateway.queued_turns() == []


async def test_answer_of_an_engine_that_cannot_stream_is_streamed_and_remembered(
    gateway: Gateway, engine: FakeEngine
) -> None:
    whole = b'{"choices":[{"message":{"content":"Hello."}}]}'
    engine.will(SendsBytes([whole]))
    answer = await gateway.chat(stream=True, memory=READWRITE)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert said((await gateway.queued_turns())[0])[-1] == ("assistant", "Hello.")


@pytest.fixture
async def impatient(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway that sends a heartbeat after 20 ms."""
    async with running_gateway(settings.model_copy(update={"heartbeat_s": 0.02})) as running:
        yield running


async def test_quiet_stream_gets_comments_between_events(impatient: Gateway, engine: FakeEngine) -> None:
    engine.will(Says(pieces=["Hel", "lo."], pause_s=0.3))
    answer = await impatient.chat(stream=True, memory=READWRITE)
    assert answer.streamed_text == "Hello."
    assert answer.events.count(b": keep-alive") >= 2


async def test_half_an_event_is_held_back_so_that_no_comment_lands_in_it(
    impatient: Gateway, engine: FakeEngine
) -> None:
    event = _chunk("Hello.", '"stop"') + b"\n\n"
    halves = [event[:20], *[b""] * 30, event[20:] + _DONE + b"\n\n"]
    engine.will(SendsBytes(halves, "text/event-stream"))
    answer = await impatient.chat(stream=True)
    assert event.strip() in answer.events
    assert b": keep-alive" in answer.events


async def test_client_that_leaves_a_quiet_stream_aborts_the_engine(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Hangs("Hel"))
    async with gateway.http.post(gateway.url + CHAT, json=question(stream=True, memory=READWRITE)) as response:
        await response.content.readany()
    await engine.until_running(0)
    assert engine.aborted == 1
    await gateway.until_metric("upstream_abort_total", 1)
    assert await gateway.queued_turns() == []


async def test_client_that_leaves_after_the_last_token_is_still_remembered(
    gateway: Gateway, engine: FakeEngine
) -> None:
    engine.will(Hangs("Hello.", finished=True))
    async with gateway.http.post(gateway.url + CHAT, json=question(stream=True, memory=READWRITE)) as response:
        while b'"stop"' not in await response.content.readany():
            pass
    await engine.until_running(0)
    await _until_queued(gateway)
    (turns,) = await gateway.queued_turns()
    assert said(turns) == [("user", "Hi."), ("assistant", "Hello.")]


async def test_client_that_leaves_before_the_answer_aborts_the_engine(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Hangs())
    call = asyncio.create_task(gateway.chat(memory=READWRITE))
    await engine.until_running(1)
    call.cancel()
    await engine.until_running(0)
    assert engine.aborted == 1
    await gateway.until_metric(f'gateway_request_seconds_count{{code="499",route="{CHAT}"}}', 1)
    assert await gateway.queued_turns() == []


async def test_connection_to_the_engine_is_used_again(gateway: Gateway, engine: FakeEngine) -> None:
    for stream in (True, False, True):
        await gateway.chat(stream=stream, memory=READWRITE)
    assert len({received.port for received in engine.received}) == 1


async def _until_queued(gateway: Gateway) -> None:
    async def queued() -> bool:
        return bool(await gateway.queued_turns())

    await eventually(queued)


async def test_answer_passes_through_untouched_without_a_user(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Says("Hello there.", extra={"kv_transfer_params": {"new": 1}}))
    answer = await gateway.chat("Hi.")
    assert answer.status == 200
    assert answer.json["choices"][0]["message"]["content"] == "Hello there."
    assert answer.json["kv_transfer_params"] == {"new": 1}
    assert "memory" not in answer.json


async def test_request_bytes_reach_the_engine_untouched_without_a_user(gateway: Gateway, engine: FakeEngine) -> None:
    raw = b'{ "model": "%b", "messages":[{"role":"user","content":"Hi."}], "seed": 123456789012345678901234567890 }'
    await gateway.post(CHAT, raw % MODEL.encode())
    assert engine.last.raw == raw % MODEL.encode()


async def test_fields_that_are_not_ours_reach_the_engine(gateway: Gateway, engine: FakeEngine) -> None:
    fields: dict[str, object] = {
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "response_format": {"type": "json_object"},
        "chat_template_kwargs": {"enable_thinking": False},
        "logprobs": True,
        "invented_by_somebody": {"deep": [1, 2, {"x": None}]},
    }
    await gateway.chat(memory={"user_id": "u1"}, **fields)
    sent = engine.last.json
    assert {name: sent[name] for name in fields} == fields
    assert "memory" not in sent


async def test_messages_of_kinds_that_we_do_not_read_reach_the_engine(gateway: Gateway, engine: FakeEngine) -> None:
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "assistant", "tool_calls": [{"type": "custom", "id": "c1", "custom": {"name": "x", "input": "y"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}], "name": "Ann"},
    ]
    answer = await gateway.post(CHAT, {"model": MODEL, "messages": messages})
    assert answer.status == 200
    assert engine.last.json["messages"] == messages


async def test_route_answers_with_a_trailing_slash(gateway: Gateway) -> None:
    assert (await gateway.post(CHAT + "/", question())).status == 200
