"""Checks plain chats: finish reasons, usage, refusals."""

import json

from inference.conformance.probe import Probe, choice_of, expect, message_of
from memloop.ports import Prompt, Sampling
from memloop.wire.chat import THINKING_SWITCH, ChatMessage, Json

_LONG = "word " * 200_000


async def lists_its_model(probe: Probe) -> str:
    """Require ``/v1/models`` to list the model, and its window if available."""
    rows = (await probe.client.get_json("models")).get("data")
    named = (
        [row for row in rows if isinstance(row, dict) and row.get("id") == probe.model]
        if isinstance(rows, list)
        else []
    )
    expect(named, f"it does not list {probe.model}")
    return f"window {named[0].get('max_model_len', 'not reported')}"


async def a_reply_ends_by_itself(probe: Probe) -> str:
    """Require a short question to end with ``stop`` and a text."""
    answer = await probe.chat(max_tokens=256)
    reason = choice_of(answer).get("finish_reason")
    expect(reason == "stop", f"it ended with {reason!r}")
    expect(str(message_of(answer).get("content") or "").strip(), "the text is empty")
    return "stop"


async def a_cut_reply_says_so(probe: Probe) -> str:
    """Require ``length`` from a reply that ``max_tokens`` cuts, unless its dialect adds room for thinking."""
    reason = choice_of(await probe.chat(max_tokens=1)).get("finish_reason")
    room = (await probe.client.dialect(probe.model)).reasoning_room
    expect(reason == "length" or room, f"it ended with {reason!r}")
    return str(reason)


async def usage_is_told(probe: Probe) -> str:
    """Require counts of prompt and completion tokens."""
    reply = await probe.client.complete(Prompt((ChatMessage(role="user", content="Hello."),), Sampling(max_tokens=8)))
    expect(reply.usage.input_tokens and reply.usage.output_tokens, f"the usage is {reply.usage}")
    return f"{reply.usage.input_tokens} in, {reply.usage.output_tokens} out"


async def a_stream_is_whole(probe: Probe) -> str:
    """Require a stream to end with a usage chunk and ``[DONE]``, and to match the JSON response."""
    events = [event async for event in probe.stream()]
    expect(events and events[-1] == "[DONE]", "no [DONE] at its end")
    chunks = [json.loads(event) for event in events[:-1]]
    expect(chunks and chunks[-1].get("choices") == [] and chunks[-1].get("usage"), "no usage chunk at its end")
    text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    whole = message_of(await probe.chat()).get("content")
    expect(text == whole, f"it streams {text!r} and answers {whole!r}")
    return f"{len(chunks)} chunks"


async def greedy_is_repeatable(probe: Probe) -> str:
    """Require the same text twice at temperature 0."""
    first, second = [message_of(await probe.chat()).get("content") for _ in range(2)]
    expect(first == second, f"{first!r}, then {second!r}")
    return "the same twice"


async def thinking_is_apart(probe: Probe) -> str:
    """Require requested thinking in a field of its own that our client reads."""
    prompt = Prompt((ChatMessage(role="user", content="How are you?"),), Sampling(max_tokens=256), thinking=True)
    reply = await probe.client.complete(prompt)
    expect("<think>" not in reply.content, "the thinking is in the text")
    expect(reply.reasoning.strip(), "there is no thinking")
    return "reasoning or reasoning_content"


async def thinking_can_be_off(probe: Probe) -> str:
    """Require ``chat_template_kwargs`` to switch thinking off."""
    message = message_of(await probe.chat())
    found = message.get("reasoning") or message.get("reasoning_content")
    expect(not found and "<think>" not in str(message.get("content")), "it still thinks")
    return "no thinking"


async def a_reply_fits_its_schema(probe: Probe) -> str:
    """Require a reply to fit the JSON schema of ``response_format``."""
    schema: Json = {"type": "string", "enum": ["one", "two"]}
    wanted: Json = {"type": "json_schema", "json_schema": {"name": "count", "schema": schema, "strict": True}}
    text = str(message_of(await probe.chat("One or two?", response_format=wanted)).get("content")).strip()
    expect(text in ('"one"', '"two"'), f"it replied {text!r}")
    return text


async def unknown_fields_do_no_harm(probe: Probe) -> str:
    """Require unknown fields to be ignored, or its dialect to omit the fields that engines add to OpenAI's."""
    status = await probe.status(probe.body(memloop_unknown_field=1))
    dialect = await probe.client.dialect(probe.model)
    expect(status == 200 or THINKING_SWITCH in dialect.leaves_out, f"it answered {status}")
    return str(status)


async def an_unknown_model_is_refused(probe: Probe) -> str:
    """Require 404 for a model that the engine does not serve."""
    status = await probe.status({**probe.body(), "model": "no-such-model"})
    expect(status == 404, f"it answered {status}")
    return "404"


async def an_over_long_prompt_is_refused(probe: Probe) -> str:
    """Require 400 or 413 for a prompt beyond the window, never a silent cut."""
    status = await probe.status(probe.body(_LONG))
    expect(status in (400, 413), f"it answered {status}")
    return str(status)


async def malformed_json_is_refused(probe: Probe) -> str:
    """Require a 4xx for a malformed JSON body."""
    status = await probe.status(b'{"model": ')
    expect(400 <= status < 500, f"it answered {status}")
    return str(status)
