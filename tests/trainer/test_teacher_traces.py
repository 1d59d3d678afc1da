"""A teacher's runs over dialogues: the served loop judges them, and only what it accepted is learned."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import TypeAdapter

from memloop.ports import Completion, Prompt
from memloop.profiles import Profile, load_profile
from memloop.wire.chat import FunctionCall, ToolCall
from memloop.wire.errors import Unavailable
from tests.fakes.job_engine import add_memory, tool_call
from tests.fakes.synthetic_conversations import synthetic, write_synthetic
from tests.fakes.web_server import serving
from trainer.data.dialogues.dialogue import Conversation
from trainer.data.journal import Journal
from trainer.data.parquet import read_parquet
from trainer.data.retry_policy import RetryPolicy
from trainer.data.teacher import PaidReply, Teacher, TeacherTrace

PROFILE = load_profile("default")
ADD, SEARCH = add_memory("Somebody likes tea."), tool_call("search_memory", query="tea")
BUFFER = tool_call("buffer_memory", reason="half a thought")


class Scripted:
    """Gives the replies in turn, the last one for ever; a number is a failure."""

    def __init__(self, *replies: Any) -> None:
        self._replies = list(replies)
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, int):
            raise Unavailable("gone")
        if isinstance(reply, str):
            return Completion(reply)
        function = FunctionCall.model_validate(reply["tool_calls"][0]["function"])
        return Completion("", "tool_calls", "A thought.", (ToolCall(id="t", function=function),))


@pytest.fixture
def talk() -> Conversation:
    return synthetic("locomo", seed=0, sessions=1)


def journal(path: Path) -> Journal[PaidReply]:
    return Journal(path, {}, records=TypeAdapter(PaidReply), key_of=lambda paid: paid.key)


async def taught(
    model: Scripted, talk: Conversation, path: Path, *, window: int | None = None, profile: Profile = PROFILE
) -> list[TeacherTrace]:
    teacher = Teacher(model, profile, window=window, retries=RetryPolicy(attempts=2, pause_s=0.0))
    with journal(path) as kept:
        return [trace async for trace in teacher.traces(talk, kept)]


async def test_every_turn_is_decided_on_once_and_later_runs_find_what_earlier_ones_stored(
    talk: Conversation, tmp_path: Path
) -> None:
    traces = await taught(Scripted(ADD), talk, tmp_path / "j")
    said = [turn.content for trace in traces for turn in trace.turns]
    assert said == [f"{turn.speaker}: {turn.text}" for turn in talk.turns]
    assert [len(trace.stored) for trace in traces] == list(range(len(traces)))
    assert {turn.role for trace in traces for turn in trace.turns} == {"user", "assistant"}


@pytest.mark.parametrize(("of_profile", "window", "most"), [(2, None, 2), (2, 3, 3)], ids=["profile", "option"])
async def test_the_profile_sets_the_turns_of_a_decision(
    talk: Conversation, tmp_path: Path, of_profile: int, window: int | None, most: int
) -> None:
    profile = replace(PROFILE, turns_per_decision=of_profile)
    traces = await taught(Scripted(ADD), talk, tmp_path / "j", window=window, profile=profile)
    assert max(len(trace.turns) for trace in traces) == most


async def test_without_a_number_a_session_is_decided_on_at_once(talk: Conversation, tmp_path: Path) -> None:
    traces = await taught(Scripted(ADD), talk, tmp_path / "j", profile=replace(PROFILE, turns_per_decision=None))
    assert len(traces) == len(talk.sessions)


async def test_a_search_and_its_decision_are_one_conversation_and_both_replies_are_learned(
    talk: Conversation, tmp_path: Path
) -> None:
    (trace, *_) = await taught(Scripted(SEARCH, ADD), talk, tmp_path / "j")
    row = trace.imitation("t", 0)
    roles = [message["role"] for message in row["messages"]]  # type: ignore[index,union-attr]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    assert row["learned"] == [2, 4]
    assert json.loads(str(row["tools"])) == list(PROFILE.prompts["memory"].tools)
    assert row["messages"][4]["reasoning_content"] == "A thought."  # type: ignore[index]


async def test_a_rejected_reply_is_shown_and_not_learned(talk: Conversation, tmp_path: Path) -> None:
    (trace, *_) = await taught(Scripted("nonsense", ADD), talk, tmp_path / "j")
    row = trace.imitation("t", 0)
    assert [message["role"] for message in row["messages"]][-3:] == ["assistant", "user", "assistant"]  # type: ignore[index,union-attr]
    assert row["learned"] == [len(row["messages"]) - 1]  # type: ignore[arg-type]


async def test_a_run_without_a_decision_is_not_usable(talk: Conversation, tmp_path: Path) -> None:
    traces = await taught(Scripted("nonsense"), talk, tmp_path / "j")
    assert not any(trace.usable for trace in traces)


async def test_buffered_turns_come_again_and_are_settled_with_their_session(talk: Conversation, tmp_path: Path) -> None:
    first, second, *_ = await taught(Scripted(BUFFER, ADD), talk, tmp_path / "j", window=2)
    assert second.turns[: len(first.turns)] == first.turns
    last = (await taught(Scripted(BUFFER), talk, tmp_path / "k", window=2))[-1]
    assert last.task("t", 0)["reward_model"]["ground_truth"] == ["ignore"]  # type: ignore[index,call-overload]


async def test_a_run_that_was_stopped_pays_for_nothing_twice(talk: Conversation, tmp_path: Path) -> None:
    stopped = Scripted(SEARCH, ADD, ADD, 503)
    with pytest.raises(Unavailable):
        await taught(stopped, talk, tmp_path / "j", window=2)
    model = Scripted(ADD)
    traces = await taught(model, talk, tmp_path / "j", window=2)
    asked_before = len(stopped.prompts) - 2  # the last one failed, and was tried twice
    assert asked_before + len(model.prompts) == sum(len(trace.calls) for trace in traces)


@pytest.fixture
async def endpoint() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        del request
        return web.json_response({"choices": [{"message": ADD, "finish_reason": "tool_calls"}]})

    async with serving([web.post("/v1/chat/completions", answer)]) as url:
        yield f"{url}/v1"


async def test_the_command_writes_what_fine_tuning_and_rl_read(endpoint: str, tmp_path: Path) -> None:

    data, out = tmp_path / "locomo.json", tmp_path / "set"
    write_synthetic(data, "locomo", seed=0, sessions=2)
    given = ["--format", "locomo", "--data", str(data), "--teacher", endpoint, "teacher", "--out", str(out)]
    command = [sys.executable, "-m", "trainer", "data", "memreader", *given]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said = json.loads((await process.communicate())[0])
    count = said["decisions"]["add"]
    assert said["rows"] == {"train": count, "tasks": count}
    assert len(list(read_parquet(out / "train.parquet"))) == count
    (task, *_) = read_parquet(out / "tasks.parquet")
    assert task["reward_model"]["ground_truth"] == ["add", "Somebody likes tea."]  # type: ignore[index,call-overload]
    assert '"teacher"' in (out / "README.md").read_text()
    assert endpoint not in (out / "README.md").read_text()
