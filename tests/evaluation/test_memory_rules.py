"""Which rule judges which question, and what a run under it costs."""

from pathlib import Path

import pytest

from evaluation.memory import command
from evaluation.memory.forecast import forecast, sentence
from evaluation.memory.options import parsed
from evaluation.memory.prompts import ADVICE_SYSTEM, ANSWER_SYSTEM
from evaluation.memory.rules import digest_of, rule_of
from evaluation.memory.scores import Prices
from tests.fakes.synthetic_conversations import synthetic, write_synthetic
from trainer.data.dialogues.formats import Format


@pytest.mark.parametrize(
    ("format_", "categories", "told"),
    [
        ("longmemeval", ("single-session-user",), "only a part of what is asked for"),
        ("longmemeval", ("single-session-assistant",), "only a part of what is asked for"),
        ("longmemeval", ("multi-session",), "only a part of what is asked for"),
        ("longmemeval", ("temporal-reasoning",), "off by one is still correct"),
        ("longmemeval", ("knowledge-update",), "may tell the earlier state"),
        ("longmemeval", ("single-session-preference",), "need not meet every point"),
        ("longmemeval", ("knowledge-update", "abstention"), "recognises that"),
        ("locomo", ("temporal",), "Be generous"),
        ("locomo", ("single-hop",), "Be generous"),
        ("halumem", ("Basic Fact Recall",), "makes something up"),
    ],
)
def test_each_kind_of_question_has_the_rule_of_its_benchmark(
    format_: Format, categories: tuple[str, ...], told: str
) -> None:
    assert told in rule_of(format_, categories).task


def test_off_by_one_is_forgiven_in_times_alone() -> None:
    kinds = ("single-session-user", "multi-session", "knowledge-update", "abstention")
    assert not any("off by one" in rule_of("longmemeval", (kind,)).task for kind in kinds)


def test_only_halumem_tells_omitted_answers_from_wrong_ones() -> None:
    assert rule_of("halumem", ("any",)).verdicts == ("correct", "wrong", "missed")
    assert (
        rule_of("locomo", ("temporal",)).verdicts
        == rule_of("longmemeval", ("abstention",)).verdicts
        == ("correct", "wrong")
    )


def test_a_preference_asks_for_advice_and_every_other_question_for_a_few_words() -> None:
    assert rule_of("longmemeval", ("single-session-preference",)).answer_system == ADVICE_SYSTEM
    assert rule_of("longmemeval", ("multi-session",)).answer_system == ANSWER_SYSTEM


def test_results_under_other_rules_have_another_digest() -> None:
    assert len({digest_of("locomo"), digest_of("longmemeval"), digest_of("halumem")}) == 3


def test_a_forecast_counts_an_answer_and_a_judgement_for_each_question_row_and_seed() -> None:
    talk = synthetic("locomo", sessions=4)
    expected = forecast([talk], ("full", "off"), seeds=3, top_k=10)
    assert expected.calls == 2 * 2 * 3 * len(talk.questions)


def test_full_context_costs_the_talk_for_every_question() -> None:
    talk = synthetic("locomo", sessions=4)
    full, off = (forecast([talk], (row,), seeds=1, top_k=10).tokens.input for row in ("full", "off"))
    said = sum(len(f"{turn.speaker}: {turn.text}") for turn in talk.turns) / 4
    assert (full - off) / len(talk.questions) == pytest.approx(said, rel=0.02)


def test_a_forecast_gives_dollars_only_where_prices_are_known() -> None:
    expected = forecast([synthetic("locomo", sessions=4)], ("off",), seeds=1, top_k=10)
    assert "$" not in sentence(expected, Prices())
    assert "about $" in sentence(expected, Prices(1000.0, 1000.0))


def test_the_command_forecasts_without_an_engine(tmp_path: Path) -> None:
    write_synthetic(tmp_path / "data", "halumem", sessions=2)
    options = ["--format", "halumem", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "out"), "--forecast"]
    assert "calls with" in command.evaluate(parsed(options))
    assert not (tmp_path / "out").exists()
