"""Checks tool calls, which the memory writer depends on."""

import json
from collections.abc import Sequence
from typing import Final

from inference.conformance.probe import TOOL, Probe, Unmet, arguments_of, calls_of, choice_of, expect, message_of
from memloop.loops.forms import Forms
from memloop.loops.memreader import FoundCall, decide, find_call
from memloop.loops.results import AddMemories, InvalidOutput
from memloop.ports import Prompt, Recalled, Sampling, ToolChoice
from memloop.profiles import load_profile
from memloop.wire.chat import ChatMessage, Json
from memloop.wire.memory import Source

_NAMED: Json = {"type": "function", "function": {"name": "ignore_memory"}}
_FACTS: Final = {
    "I'm allergic to peanuts.": "peanut",
    "My sister Marta lives in Lisbon.": "marta",
    "What should I bring? We play the cello at Ada's on Sunday.": "cello",
    "We have a cat called Minka.": "minka",
}
"""What users tell, and a word of the memory that is due."""
_MOST_LOST: Final = 1
_SMALL_TALK = "Decide what to remember from this conversation.\n\n[user]: How are you?"


async def required_makes_one_call(probe: Probe) -> str:
    """Require a native call under ``required`` whose arguments fit the schema, never an empty list."""
    (function, *more) = calls_of(await probe.chat(_SMALL_TALK, tools=[TOOL], tool_choice="required")) or [{}]
    expect(function.get("name") == "ignore_memory", "there is no native call")
    expect(isinstance(arguments_of(function).get("reason"), str), f"the arguments are {function.get('arguments')}")
    return f"{1 + len(more)} call(s)"


async def a_named_tool_is_called(probe: Probe) -> str:
    """Require a named ``tool_choice`` to call that tool."""
    functions = calls_of(await probe.chat(_SMALL_TALK, tools=[TOOL], tool_choice=_NAMED))
    expect([function.get("name") for function in functions] == ["ignore_memory"], f"it calls {functions}")
    return "called"


async def a_named_call_ends_as_a_call(probe: Probe) -> str:
    """Require the ``finish_reason`` of a named choice to be ``tool_calls``."""
    reason = choice_of(await probe.chat(_SMALL_TALK, tools=[TOOL], tool_choice=_NAMED)).get("finish_reason")
    expect(reason == "tool_calls", f"it ended with {reason!r}")
    return "tool_calls"


async def none_calls_nothing(probe: Probe) -> str:
    """Require no call under ``none``, and no raw call in the text."""
    answer = await probe.chat(_SMALL_TALK, tools=[TOOL], tool_choice="none")
    expect(not calls_of(answer), "it calls a tool")
    expect("<tool_call>" not in str(message_of(answer).get("content")), "the text holds a raw <tool_call>")
    return "text"


async def a_streamed_call_is_whole(probe: Probe) -> str:
    """Require the pieces of a streamed call to join to valid JSON arguments."""
    name, arguments = "", ""
    async for event in probe.stream(_SMALL_TALK, tools=[TOOL], tool_choice="required"):
        for choice in json.loads(event).get("choices", ()) if event != "[DONE]" else ():
            for call in choice["delta"].get("tool_calls") or ():
                name += call["function"].get("name") or ""
                arguments += call["function"].get("arguments") or ""
    expect(name == "ignore_memory", f"the name is {name!r}")
    expect(isinstance(arguments_of({"arguments": arguments}).get("reason"), str), f"the arguments are {arguments!r}")
    return "joined"


async def the_writer_calls_without_thinking(probe: Probe) -> str:
    """Require a parsable call for MemReader's prompt and four tools with thinking off."""
    return await _writer_call(probe, choice="auto", thinking=False)


async def the_writer_calls_while_thinking(probe: Probe) -> str:
    """Require the same with thinking on: the call must not be lost in it."""
    return await _writer_call(probe, choice="auto", thinking=True)


async def the_writer_must_call_while_thinking(probe: Probe) -> str:
    """Require the same under ``required``."""
    return await _writer_call(probe, choice="required", thinking=True)


async def the_writer_finds_its_form(probe: Probe) -> str:
    """Require a decision in one of the memory writer's forms, each tried as often as the writer does."""
    forms, profile = Forms(), load_profile("default")
    told = (Source(role="user", content="I moved to Lima, and my dog is called Rufus."),)
    model = probe.client.of_model(probe.model)
    once, again = [
        await decide(told, model=model, index=_Empty(), profile=profile, forms=forms) for _ in range(2)
    ]  # one bad reply may be chance
    expect(not isinstance(again.decision, InvalidOutput), again.records[-1].reason)
    return f"{forms.left(profile)[0]}: {once.decision.action}, {again.decision.action}"


async def the_writer_keeps_what_it_is_told(probe: Probe) -> str:
    """Require three of four plain facts in the form that the writer finds. Names the profile for JSON if that helps."""
    if await _keeps(probe, "default"):
        return f"at least {len(_FACTS) - _MOST_LOST} of {len(_FACTS)} facts"
    helps = await _keeps(probe, "extractor")
    raise Unmet(f"it loses facts, {'but keeps them' if helps else 'also'} with MEMLOOP_PROFILE=extractor")


async def _keeps(probe: Probe, name: str) -> bool:
    """Return whether the writer loses one fact at most by this profile. It is not asked on once it has lost two."""
    forms, profile, model = Forms(), load_profile(name), probe.client.of_model(probe.model)
    lost = 0
    for fact, word in _FACTS.items():
        told = (Source(role="user", content=fact),)
        result = await decide(told, model=model, index=_Empty(), profile=profile, may_buffer=False, forms=forms)
        drafts = result.decision.drafts if isinstance(result.decision, AddMemories) else ()
        lost += not any(word in draft.value.casefold() for draft in drafts)
        if lost > _MOST_LOST:
            return False
    return True


class _Empty:
    """A MemoryIndex of nothing."""

    async def search(self, query: str, *, top_k: int) -> Sequence[Recalled]:
        del query, top_k
        return ()


async def a_tool_result_is_taken(probe: Probe) -> str:
    """Require a conversation to continue after a tool message."""
    call: Json = {"id": "c1", "type": "function", "function": {"name": "ignore_memory", "arguments": '{"reason": "x"}'}}
    messages: list[Json] = [
        {"role": "user", "content": "How are you?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Done."},
    ]
    status = await probe.status({**probe.body(tools=[TOOL]), "messages": [*messages]})
    expect(status == 200, f"it answered {status}")
    return "200"


async def _writer_call(probe: Probe, *, choice: ToolChoice, thinking: bool) -> str:
    tools = load_profile("default").prompts["memory"].tools
    message = ChatMessage(role="user", content=_SMALL_TALK)
    prompt = Prompt((message,), Sampling(max_tokens=256), tools=tools, tool_choice=choice, thinking=thinking)
    found = find_call(await probe.client.complete(prompt))
    expect(isinstance(found, FoundCall), getattr(found, "problem", ""))
    return getattr(found, "path", "")
