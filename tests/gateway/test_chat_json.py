"""``/v1/chat/completions`` without a stream."""

from tests.fakes.streaming_engine import MODEL, FakeEngine, Says
from tests.gateway.running import CHAT, Gateway, question


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
