"""Rewards of answers, of steps and of the memory writer, against figures worked out by hand."""

import pytest

from memloop.loops.results import AddMemories, BufferTurns, Decision, DecisionResult, InvalidOutput
from memloop.wire.memory import MemoryDraft, Usage
from memloop.wire.memory_events import Action, DecisionRecord
from trainer.objectives.answer_reward import AnswerScore, answer_reward
from trainer.objectives.memreader_reward import Gold, Weights, extraction_f1, memreader_reward
from trainer.objectives.step_rewards import judge_step, memory_step


@pytest.mark.parametrize(
    ("score", "reply", "reward"),
    [
        pytest.param("strict", r"It is \boxed{Paris}", 1.0, id="strict-right"),
        pytest.param("strict", r"It is \boxed{the Paris}", 0.0, id="strict-counts-articles"),
        pytest.param("strict", "It is Paris", 0.0, id="strict-wants-a-box"),
        pytest.param("strict", r"It is \boxed{PARIS}", 1.0, id="strict-takes-any-case"),
        pytest.param("strict_sub", r"It is \boxed{the Paris of today}", 1.0, id="strict-sub-takes-containment"),
        pytest.param("strict_sub", "It is Paris", 0.0, id="strict-sub-wants-a-box"),
        pytest.param("em", r"\boxed{the paris.}", 1.0, id="em-forgives-dressing"),
        pytest.param("em", r"\boxed{Paris, France}", 0.0, id="em-wants-all"),
        pytest.param("f1", r"\boxed{Paris France}", 2 / 3, id="f1-counts-words"),
        pytest.param("sub_em", r"\boxed{Paris, France}", 1.0, id="sub-em-takes-containment"),
        pytest.param("em", "<think>Rome?</think> Paris", 1.0, id="thinking-is-no-answer"),
        pytest.param("em", "", 0.0, id="silence-is-wrong"),
        pytest.param("strict_sub", r"\boxed{Parisian}", 0.0, id="strict-sub-wants-words"),
        pytest.param("published_sub", r"\boxed{Parisian}", 1.0, id="published-sub-takes-letters"),
        pytest.param("sub_em", r"\boxed{Parisian}", 0.0, id="sub-em-wants-words"),
    ],
)
def test_an_answer_is_rewarded_by_the_evaluations_scores(score: AnswerScore, reply: str, reward: float) -> None:
    assert answer_reward(reply, ["Paris"], score=score) == pytest.approx(reward)


def test_an_item_without_gold_answers_is_refused() -> None:
    with pytest.raises(ValueError, match="gold"):
        answer_reward("x", [])


def test_a_turn_that_finds_half_of_the_answer_earns_half() -> None:
    assert memory_step("nothing yet", "his name is Miller", ["Miller Smith"]) == 0.5
    assert memory_step("Miller Smith", "Miller", ["Miller Smith"]) == -0.5


def test_a_repeated_query_costs_one_whatever_its_dressing() -> None:
    asked = ["Who wrote it?", "Where was she born?"]
    assert judge_step("where was she  born", asked) == -1.0
    assert judge_step("When was she born?", asked) == 0.0
    assert judge_step(None, asked) == 0.0


def result(decision: Decision, *actions: Action, output_tokens: int = 10) -> DecisionResult:
    records = tuple(
        DecisionRecord(action=action, parse_path="failed" if action == "invalid" else "native") for action in actions
    )
    return DecisionResult(decision, records, Usage(output_tokens=output_tokens, llm_calls=len(records)))


def add(*values: str) -> AddMemories:
    return AddMemories(tuple(MemoryDraft(key=value, value=value) for value in values), "noted")


def test_the_right_action_with_the_right_fact_earns_all() -> None:
    reward = memreader_reward(result(add("Anna lives in Rome."), "add"), Gold(("add",), ("Anna lives in Rome",)))
    assert reward.total == pytest.approx(1.0)


def test_an_invalid_turn_before_a_right_one_costs_half_of_the_format_part() -> None:
    reward = memreader_reward(
        result(add("Anna lives in Rome"), "invalid", "add"), Gold(("add",), ("Anna lives in Rome",))
    )
    assert reward.format == 0.5
    assert reward.total == pytest.approx(0.9)


def test_no_usable_call_earns_nothing_even_after_valid_searches() -> None:
    reward = memreader_reward(result(InvalidOutput("empty", ""), "search", "search", "invalid"), Gold(("ignore",)))
    assert reward.total == 0.0


def test_buffering_what_should_be_added_keeps_only_the_format_part() -> None:
    reward = memreader_reward(result(BufferTurns("later"), "buffer"), Gold(("add",), ("Anna lives in Rome",)))
    assert (reward.action, reward.extraction, reward.total) == (0.0, 0.0, pytest.approx(0.2))


def test_gold_may_accept_more_than_one_action() -> None:
    assert memreader_reward(result(BufferTurns("later"), "buffer"), Gold(("ignore", "buffer"))).total == pytest.approx(
        1.0
    )


def test_the_gold_of_a_row_is_its_action_and_then_its_memories() -> None:
    assert Gold.told(["add", "a", "b"]) == Gold(("add",), ("a", "b"))
    with pytest.raises(ValueError, match="without gold"):
        Gold.told([])


def test_rambling_costs_up_to_its_weight() -> None:
    long = result(BufferTurns("later"), "buffer", output_tokens=150)
    reward = memreader_reward(long, Gold(("buffer",)), weights=Weights(free_tokens=100))
    assert reward.total == pytest.approx(1.0 - 0.1 * 0.5)


def test_each_memory_is_matched_once() -> None:
    # one of two golds is met in full, the second copy meets nothing: 2 · 1 / (2 + 2)
    assert extraction_f1(["Anna lives in Rome", "Anna lives in Rome"], ["Anna lives in Rome", "Bob likes tea"]) == 0.5
    assert extraction_f1([], []) == 1.0
    assert extraction_f1([], ["Bob likes tea"]) == 0.0
