"""Agents that are one function: what is recorded of them, what is trained, and what is refused."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from examples.agents import map_reduce, tool_user
from memloop.ports import ChatModel, Prompt, Sampling
from memloop.wire.chat import ChatMessage
from trainer.rollout.advantages import Rows, advantages_of
from trainer.rollout.agent_function import AgentError, FunctionSession, load_function, run_function
from trainer.rollout.conversations import AgentModel, TooManyCalls
from trainer.rollout.recording import Generated, PromptTooLong
from trainer.rollout.settings import LoopSettings

END = 3
ROW = {
    "context": "The lamp is red.\nThe code is 417.\nThe door is shut.",
    "extra_info": {"question": "What is the code?"},
    "reward_model": {"ground_truth": ["417"]},
}
Agent = Callable[[Mapping[str, Any], ChatModel], Awaitable[float | Sequence[float]]]


class Letters:
    """A chat template and an engine in characters: ``>`` opens a message, END ends a reply."""

    def __init__(self, reply: Callable[[str], str]) -> None:
        self._reply = reply

    def render(self, prompt: Prompt) -> list[int]:
        ids: list[int] = []
        for message in prompt.messages:
            ids += [ord("a" if message.role == "assistant" else "u"), *map(ord, message.text()), END]
        return [*ids, ord("a")]

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(chr(each) for each in token_ids if each != END)

    async def generate(self, prompt_ids: list[int], *, max_tokens: int) -> Generated:
        del max_tokens
        reply = self._reply(self.decode(prompt_ids))
        await asyncio.sleep(0)  # calls that are made side by side take turns
        ids = (*map(ord, reply), END)
        return Generated(ids, (-0.5,) * len(ids), truncated=False, version=7)


def scripted(*replies: str) -> Callable[[str], str]:
    script = iter(replies)
    return lambda _: next(script)


async def run(
    agent: Agent, reply: Callable[[str], str], *, row: Mapping[str, Any] = ROW, longest: int = 10_000, calls: int = 64
) -> FunctionSession:
    letters = Letters(reply)
    model = AgentModel(letters, letters, max_prompt_tokens=10_000, max_calls=calls)
    return await run_function(agent, row, model, max_response_tokens=longest)


def trained(session: FunctionSession) -> list[str]:
    """The trained characters of each row."""
    return [
        "".join(chr(each) for each, mine in zip(row.response_ids, row.mask, strict=True) if mine and each != END)
        for row in session.conversations
    ]


def prompt(*messages: tuple[str, str]) -> Prompt:
    return Prompt(tuple(ChatMessage(role=role, content=text) for role, text in messages), Sampling(max_tokens=8))


SEARCH_CODE = '<tool_call>{"name": "search", "arguments": {"words": "code"}}</tool_call>'


async def test_a_tool_users_turns_are_one_conversation_whose_tool_results_are_not_trained() -> None:
    session = await run(tool_user.solve, scripted(SEARCH_CODE, r"\boxed{417}"))
    assert session.reward == 1.0
    assert trained(session) == [SEARCH_CODE + r"\boxed{417}"]
    (row,) = session.conversations
    whole = "".join(map(chr, row.response_ids))
    assert "The code is 417." in whole
    assert len(row.log_probs) == len(row.mask) == len(row.response_ids)
    assert {prob for prob, mine in zip(row.log_probs, row.mask, strict=True) if not mine} == {0.0}
    assert row.versions == (7, 7)


async def test_a_tool_user_that_only_searches_earns_nothing_and_stops() -> None:
    session = await run(tool_user.solve, lambda _: SEARCH_CODE)
    assert session.reward == 0.0
    assert trained(session) == [SEARCH_CODE * tool_user.MOST_TURNS]


async def test_a_map_reduce_readers_calls_are_rows_with_rewards_of_their_own() -> None:
    parts = ["x" * map_reduce.PART_CHARACTERS, "the code is 417"]

    def reply(asked: str) -> str:
        if "Notes on the parts" in asked:
            return r"\boxed{417}"
        return "417" if "417" in asked else "nothing"

    session = await run(map_reduce.solve, reply, row={**ROW, "context": "".join(parts)})
    assert trained(session) == ["nothing", "417", r"\boxed{417}"]
    assert session.reward == pytest.approx(2 / 3)
    assert session.credits == pytest.approx([-2 / 3, 1 / 3, 1 / 3])


async def test_a_history_that_was_rewritten_begins_a_row_of_its_own() -> None:
    async def forgetful(row: Mapping[str, Any], model: ChatModel) -> float:
        del row
        await model.complete(prompt(("user", "one")))
        await model.complete(prompt(("user", "summary of one"), ("user", "two")))
        return 1

    assert trained(await run(forgetful, scripted("first", "second"))) == ["first", "second"]


async def test_a_branch_continues_the_conversation_once_and_never_trains_a_reply_twice() -> None:
    async def branching(row: Mapping[str, Any], model: ChatModel) -> float:
        del row
        await model.complete(prompt(("user", "one")))
        for ask in ("left", "right"):
            await model.complete(prompt(("user", "one"), ("assistant", "first"), ("user", ask)))
        return 1

    assert trained(await run(branching, scripted("first", "l", "r"))) == ["firstl", "r"]


async def test_a_conversation_longer_than_a_row_goes_on_in_another() -> None:
    session = await run(tool_user.solve, scripted(SEARCH_CODE, r"\boxed{417}"), longest=len(SEARCH_CODE) + 20)
    assert trained(session) == [SEARCH_CODE, r"\boxed{417}"]


async def test_rewards_that_do_not_fit_the_calls_are_refused() -> None:
    async def careless(row: Mapping[str, Any], model: ChatModel) -> list[float]:
        del row
        await model.complete(prompt(("user", "one")))
        return [1.0, 0.0]

    with pytest.raises(AgentError, match="2 rewards for 1 calls"):
        await run(careless, scripted("a"))


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), None], ids=str)
async def test_a_reward_that_is_no_number_is_refused(reward: Any) -> None:
    async def odd(row: Mapping[str, Any], model: ChatModel) -> float:
        del row
        await model.complete(prompt(("user", "one")))
        return reward

    with pytest.raises(AgentError, match="not a finite number"):
        await run(odd, scripted("a"))


async def test_an_agent_that_never_asks_the_model_is_refused() -> None:
    async def silent(row: Mapping[str, Any], model: ChatModel) -> float:
        del row, model
        return 1.0

    with pytest.raises(AgentError, match="nothing to train"):
        await run(silent, scripted())


async def test_an_agent_that_never_stops_is_stopped() -> None:
    async def endless(row: Mapping[str, Any], model: ChatModel) -> float:
        del row
        while True:
            await model.complete(prompt(("user", "again")))

    with pytest.raises(TooManyCalls, match=r"memloop\.max_calls=5"):
        await run(endless, lambda _: "a", calls=5)


async def test_a_prompt_longer_than_the_run_allows_is_an_error_and_not_cut() -> None:
    letters = Letters(scripted("a"))
    model = AgentModel(letters, letters, max_prompt_tokens=10, max_calls=2)
    with pytest.raises(PromptTooLong, match="longer than"):
        await run_function(tool_user.solve, ROW, model, max_response_tokens=100)


async def test_what_a_call_earned_beside_its_run_is_added_to_its_advantage() -> None:
    facts = [{"credit": 0.25}, {"credit": -0.25}, {"credit": 0.0}]
    mask = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    rows = Rows(["p_0_0", "p_0_1", "p_1_0"], facts, torch.tensor([0.5, 0.5, 0.0]), mask)
    # the run's part is ±0.25; a token of the environment has none
    found = advantages_of(rows, LoopSettings(objective="grpo"))
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.0], [0.0, 0.0], [-0.25, -0.25]]))
    found = advantages_of(rows, LoopSettings(objective="amortised"))
    torch.testing.assert_close(found, torch.tensor([[0.25, 0.0], [0.0, 0.0], [-0.25, -0.25]]))


def plain(row: Any, model: Any) -> float:
    del row, model
    return 0.0


async def lonely(row: Any) -> float:
    del row
    return 0.0


NAMESPACE = SimpleNamespace(value=1)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("solve", "reads package.module:function"),
        ("no.such.module:solve", "PYTHONPATH"),
        ("examples.agents.tool_user:nothing", "has no nothing"),
        (f"{__name__}:plain", "not an async function"),
        (f"{__name__}:lonely", "does not take a row and a model"),
        (f"{__name__}:NAMESPACE", "not an async function"),
    ],
)
def test_a_name_that_leads_to_no_agent_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(AgentError, match=reason):
        load_function(name)


def test_an_agent_is_found_by_its_name() -> None:
    assert load_function("examples.agents.tool_user:solve") is tool_user.solve


def test_an_objective_that_needs_our_loops_reads_is_refused_for_an_agent() -> None:
    with pytest.raises(ValueError, match="rea-grpo compares the reads"):
        LoopSettings(agent="a:b", objective="rea-grpo")
