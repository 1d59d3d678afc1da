"""What one turn of a read did to the memory's hold on the answer."""

import pytest

from trainer.rollout.overwrites import Change, change_of, overwrite_shares

QUESTION = "What is the locker code of Marta?"
OPEN, HELD = "The locker code of Marta is unknown.", "The locker code of Marta is 482."
OTHERS = "Ahead was the sea. The locker code of Bruno is 117."
TOLD = f"Call me Ishmael. {HELD} Bruno keeps 117."


@pytest.mark.parametrize(
    ("before", "after", "text", "change"),
    [
        pytest.param(OPEN, HELD, TOLD, "found", id="the fact arrives"),
        pytest.param(HELD, HELD, OTHERS, "kept", id="the fact stays beside another's"),
        pytest.param(OPEN, OPEN, OTHERS, "kept", id="an open question stays open"),
        pytest.param(OPEN, OPEN, TOLD, "missed", id="the fact is overlooked"),
        pytest.param(HELD, OPEN, OTHERS, "forgot", id="the value is given up"),
        pytest.param(HELD, "The locker code of Marta is 117.", OTHERS, "took another's", id="replaced from the text"),
        pytest.param(OPEN, "The locker code of Marta is 117.", TOLD, "took another's", id="the wrong one of two"),
        pytest.param(HELD, "The locker code of Marta is 999.", OTHERS, "invented", id="replaced by nothing told"),
        pytest.param(OPEN, "The locker code of Marta is 999.", OTHERS, "invented", id="filled by nothing told"),
    ],
)
def test_a_turn_is_named_by_what_it_did_to_the_answer(before: str, after: str, text: str, change: Change) -> None:
    assert change_of(before, after, text=text, question=QUESTION, golds=("482",)) == change


def test_a_name_in_place_of_the_answers_name_is_anothers() -> None:
    change = change_of(
        "Marta lives in Oslo.", "Marta lives in Riga.", text="Bruno lives in Riga.", question="Where?", golds=("Oslo",)
    )
    assert change == "took another's"


def test_a_capital_at_the_start_of_a_sentence_makes_no_name() -> None:
    change = change_of(
        "Nothing yet.",
        "The home town of Marta is unknown.",
        text="The sea was calm.",
        question="What is the home town of Marta?",
        golds=("Oslo",),
    )
    assert change == "kept"


def test_a_wrong_value_that_stays_is_counted_once() -> None:
    wrong = "The locker code of Marta is 117."
    assert change_of(wrong, wrong, text="Ahead was the sea.", question=QUESTION, golds=("482",)) == "kept"


def test_new_words_beside_an_answer_without_a_form_are_no_error() -> None:
    change = change_of(
        "They sailed east.", "They sailed east at dawn.", text="At dawn.", question="Where?", golds=("east",)
    )
    assert change == "kept"


def test_the_metrics_are_shares_of_the_reading_turns_alone() -> None:
    shares = overwrite_shares(["found", "kept", "forgot", "took another's", None, None])
    assert shares == {
        "memloop/missed": 0.0,
        "memloop/forgot": 0.25,
        "memloop/took_anothers": 0.25,
        "memloop/invented": 0.0,
    }
