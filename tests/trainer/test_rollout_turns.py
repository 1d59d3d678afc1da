"""What a rollout records of its turns, and the advantages that objectives make of the rows."""

from collections.abc import Mapping, Sequence

import pytest
import torch

from memloop.chunking import EstimatingSplitter
from memloop.loops.memagent import read_document
from memloop.loops.memreread import reread_document
from memloop.loops.steps import Answered
from memloop.ports import HeldChunks, Prompt
from memloop.profiles import load_profile
from memloop.wire.chat import FunctionCall, ToolCall
from memloop.wire.memory import Source, Usage
from tests.dialogues.scripted import MEMREREAD
from tests.fakes.job_engine import add_memory
from tests.memloop.reading import chunks_of
from trainer.data.rows import writing_row
from trainer.objectives.step_rewards import words_held
from trainer.rollout.advantages import Rows, advantages_of
from trainer.rollout.recording import Generated, RecordingModel
from trainer.rollout.sessions import LoopRunner
from trainer.rollout.settings import LoopSettings
from trainer.rollout.turn_facts import facts_of
from trainer.tiny.chat_format import tool_call_text

PROFILE = load_profile("tiny")


class Letters:
    """Token ids that are characters, and replies from a script."""

    def __init__(self, *replies: str, truncated: bool = False) -> None:
        self._replies = iter(replies)
        self._truncated = truncated

    def render(self, prompt: Prompt) -> list[int]:
        return [ord(letter) for letter in prompt.messages[-1].text()]

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(chr(each) for each in token_ids if each)

    async def generate(self, prompt_ids: list[int], *, max_tokens: int) -> Generated:
        del prompt_ids, max_tokens
        ids = (*(ord(letter) for letter in next(self._replies)), 0)
        return Generated(ids, (0.0,) * len(ids), truncated=self._truncated, version=3)


def recording(*replies: str) -> RecordingModel:
    letters = Letters(*replies)
    return RecordingModel(letters, letters, max_prompt_tokens=10_000)


def three_chunks() -> HeldChunks:
    return chunks_of("one ", "two ", "three")


async def test_every_reply_of_a_reread_gets_its_kind_and_its_step_reward() -> None:
    model = recording(*MEMREREAD.replies)
    await reread_document("Where?", three_chunks(), model=model, profile=PROFILE, report=model.report)
    facts = facts_of(model.turns, question="Where?", golds=("417",), empty_memory=PROFILE.empty_memory)
    assert [(each.kind, each.step) for each in facts] == [
        *([("ChunkRead", 0.0)] * 3),
        ("Judged", 0.0),
        ("ChunkRead", 1.0),
        ("ChunkRead", 0.0),
        ("ChunkRead", 0.0),
        ("SubAnswered", None),
        ("Integrated", 1.0),
        ("Judged", 0.0),
        ("Answered", None),
    ]


async def test_the_public_codes_step_reward_is_the_gold_words_in_each_reply() -> None:
    model = recording(*MEMREREAD.replies)
    await reread_document("Where?", three_chunks(), model=model, profile=PROFILE, report=model.report)
    facts = facts_of(
        model.turns,
        question="Where?",
        golds=("417",),
        empty_memory=PROFILE.empty_memory,
        step_reward="words_held",
    )
    gains = facts_of(model.turns, question="Where?", golds=("417",), empty_memory=PROFILE.empty_memory)
    assert [each.step for each in facts] == [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, None, 1.0, 0.0, 1.0]
    assert [each.kind for each in facts] == [each.kind for each in gains]


def _as_the_public_code(predicted: str, golds: Sequence[str]) -> float:
    """The upstream's formula, with the old memory that it always finds: an empty one."""
    total = 0.0
    for gold in golds:
        total += sum(1.0 if word in predicted else 0.0 for word in gold.split()) / len(gold.split())
    return total / len(golds)


@pytest.mark.parametrize(
    ("reply", "golds"),
    [("The code is 417.", ("417",)), ("paris", ("Paris",)), ("New Yorker", ("New York", "NYC")), ("", ("a b",))],
)
def test_held_words_are_compared_to_the_letter_and_averaged_over_the_golds(reply: str, golds: tuple[str, ...]) -> None:
    assert words_held(reply, golds) == pytest.approx(_as_the_public_code(reply, golds))


async def test_each_read_is_named_by_what_it_did_to_the_memory() -> None:
    model = recording("The code is 417.", "The code is 417.", "The code is unknown.", r"\boxed{unknown}")
    chunks = chunks_of("The code is 417. ", "Ahead was the sea. ", "Nothing else.")
    await read_document("What is the code?", chunks, model=model, profile=PROFILE, report=model.report)
    facts = facts_of(model.turns, question="What is the code?", golds=("417",), empty_memory=PROFILE.empty_memory)
    assert [each.change for each in facts] == ["found", "kept", "forgot", None]


async def test_a_question_asked_again_costs_its_turn() -> None:
    model = recording(*(["m"] * 3), "<query>Where?</query>", r"\boxed{x}")
    await reread_document("Where?", three_chunks(), model=model, profile=PROFILE, report=model.report)
    assert facts_of(model.turns, question="Where?", golds=("x",))[3].step == -1.0


async def test_a_step_without_a_reply_of_its_own_is_an_error() -> None:
    model = recording("a")
    step = Answered("a", boxed=True, usage=Usage())
    with pytest.raises(ValueError, match="without a reply"):
        await model.report(step)


@pytest.mark.parametrize("gold", [("add", "A.", "B."), ("add", "B.", "A.")], ids=["same order", "other order"])
async def test_an_exact_decision_may_name_its_memories_in_any_order(gold: tuple[str, ...]) -> None:
    called = add_memory("A.", "B.")["tool_calls"][0]["function"]
    call = ToolCall(function=FunctionCall.model_validate(called))
    row = writing_row(
        data_source="t", index=0, id_="0", turns=[Source(role="user", content="A. B.")], stored=(), gold=gold
    )
    runner = LoopRunner(PROFILE, EstimatingSplitter(), LoopSettings(profile="tiny", decisions="exact"))
    session = await runner.run("memreader", row, recording(tool_call_text(call)))
    assert session.reward == 1.0


def rows(*facts: Mapping[str, object]) -> Rows:
    """Two rollouts of one prompt: the first has two turns and is right, the second has one and is wrong."""
    keys = ("p_0_0", "p_0_1", "p_1_0")
    return Rows(keys, facts or ({}, {}, {}), torch.tensor([1.0, 1.0, 0.0]), torch.ones(3, 2))


def test_grpo_sees_one_reward_for_each_rollout_whatever_its_turns() -> None:
    expected = torch.tensor([[0.5, 0.5], [0.5, 0.5], [-0.5, -0.5]])
    assert torch.equal(advantages_of(rows(), LoopSettings()), expected)


def test_the_amortised_objective_divides_by_turns_and_can_leave_the_answer_out() -> None:
    final = ({"final": False}, {"final": True}, {"final": True})
    advantages = advantages_of(rows(*final), LoopSettings(objective="amortised", train_final=False))
    assert torch.equal(advantages, torch.tensor([[0.25, 0.25], [0.0, 0.0], [0.0, 0.0]]))


def test_rea_grpo_takes_nodes_and_steps_from_the_rows() -> None:
    facts = (
        {"nodes": 2, "kind": "ChunkRead", "step": 1.0},
        {"nodes": 2, "kind": "Answered", "step": None},
        {"nodes": 1, "kind": "ChunkRead", "step": 0.0},
    )
    advantages = advantages_of(rows(*facts), LoopSettings(objective="rea-grpo"))[:, 0]
    assert torch.allclose(advantages, torch.tensor([0.95 + 0.05 * 0.5, 0.95, -0.95 - 0.05 * 0.5]))


def test_a_recipe_may_divide_the_amortised_advantage_by_the_groups_deviation() -> None:
    off = advantages_of(rows(), LoopSettings(objective="amortised"))
    on = advantages_of(rows(), LoopSettings(objective="amortised", normalise_by_std=True))
    assert off.abs().sum() > 0
    assert not torch.equal(on, off)
