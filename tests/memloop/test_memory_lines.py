"""The passive memory writer of a small model: a line ``topic: fact`` for each memory, ``none`` or ``wait``."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.loops.memreader import decide
from memloop.loops.parsing.memory_list import FoundList, find_memory_lines
from memloop.loops.rendering import conversation_lines
from memloop.loops.results import AddMemories, BufferTurns, IgnoreTurns
from memloop.ports import Completion
from memloop.profiles import load_profile
from memloop.wire.memory import MemoryDraft, Source
from tests.fakes.model import Line, ScriptedModel
from tests.memloop.reading import DAY, ListIndex, turn

PROFILE = load_profile("small")
HOME = MemoryDraft(key="home town", value="The user lives in Rome.", memory_type="UserMemory")


async def run(*script: Line, may_buffer: bool = True):
    model = ScriptedModel(script)
    result = await decide(
        [turn("I live in Rome.")], model=model, index=ListIndex(), profile=PROFILE, may_buffer=may_buffer
    )
    return result, model


async def test_each_line_is_a_memory_and_its_topic_the_key() -> None:
    result, model = await run("home town: The user lives in Rome.\nbridge: The bridge is closed: it fell down.")
    bridge = MemoryDraft(key="bridge", value="The bridge is closed: it fell down.", memory_type="LongTermMemory")
    assert result.decision == AddMemories((HOME, bridge), "")
    assert model.calls == 1


async def test_what_the_assistant_says_is_not_shown() -> None:
    model = ScriptedModel(["home town: The user lives in Rome."])
    said = Source(role="assistant", content="Romans keep cats. You have one, I guess.", timestamp=DAY)
    result = await decide([turn("I live in Rome."), said], model=model, index=ListIndex(), profile=PROFILE)
    assert result.decision == AddMemories((HOME,), "")
    assert "I live in Rome." in model.asked[0]
    assert "cats" not in model.asked[0]

    unread = await decide([said], model=model, index=ListIndex(), profile=PROFILE)
    assert unread.decision == IgnoreTurns("the writer reads no turn of these roles")
    assert [record.action for record in unread.records] == ["ignore"]
    assert model.calls == 1


@pytest.mark.parametrize("reply", ["none", "None.", " none\n"])
async def test_none_ignores_the_turns(reply: str) -> None:
    result, _ = await run(reply)
    assert isinstance(result.decision, IgnoreTurns)


async def test_wait_buffers_the_turns() -> None:
    result, _ = await run("wait")
    assert isinstance(result.decision, BufferTurns)
    assert result.records[0].action == "buffer"


async def test_turns_that_have_waited_long_enough_are_asked_about_once_more() -> None:
    result, model = await run("wait", "home town: The user lives in Rome.", may_buffer=False)
    assert result.decision == AddMemories((HOME,), "")
    assert "no more turns follow" in model.asked[1]
    assert [record.action for record in result.records] == ["buffer", "add"]


@pytest.mark.parametrize("second", ["wait", "How lovely!"])
async def test_a_model_that_insists_on_waiting_has_decided_so(second: str) -> None:
    result, model = await run("wait", second, may_buffer=False)
    assert isinstance(result.decision, BufferTurns)
    assert model.calls == 2


async def test_prose_is_repaired_once_and_names_the_form() -> None:
    result, model = await run("How lovely that you live there!", "home town: The user lives in Rome.")
    assert result.decision == AddMemories((HOME,), "")
    assert 'lines "topic: fact", "none" or "wait"' in model.asked[1]


def test_a_line_that_the_token_limit_cut_is_left_out() -> None:
    reply = "home town: The user lives in Rome.\ndog: The user's dog is cal"
    found = find_memory_lines(Completion(reply, finish_reason="length"))
    assert isinstance(found, FoundList)
    assert len(found.entries) == 1


def test_the_writer_sees_the_day_of_the_turns() -> None:
    told = Source(role="user", content="I fly tomorrow.", timestamp=datetime(2026, 1, 31, 9, tzinfo=UTC))
    lines = conversation_lines([told], PROFILE.turns)
    assert lines == "Date: 2026-01-31\n[user]: I fly tomorrow."


@given(st.text(max_size=400))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    found = find_memory_lines(Completion(reply))
    assert not isinstance(found, FoundList) or all(isinstance(entry, dict) for entry in found.entries)
