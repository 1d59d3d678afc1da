"""Names and order of a step's prompts and rows."""

from random import Random

from trainer.rollout.order import PromptNames, row_order


def test_rows_stand_in_the_order_of_prompt_session_and_turn_however_they_arrived() -> None:
    names = PromptNames().next(3, 12)
    keys = [f"{name}_{session}_{turn}" for name in names for session in range(11) for turn in range(12)]
    arrived = Random(0).sample(keys, len(keys))
    assert [arrived[place] for place in row_order(arrived)] == keys


def test_names_go_on_within_a_step_and_begin_again_with_the_next() -> None:
    names = PromptNames()
    first = [*names.next(9, 2), *names.next(9, 1)]
    later = names.next(10, 2)
    assert len({*first, *later}) == 5
    assert first + later == sorted(first + later)
    assert PromptNames().next(10, 2) == later  # a resumed run begins at this step


def test_names_hold_no_separator_of_verls_keys() -> None:
    assert "_" not in PromptNames().next(1, 1)[0]
