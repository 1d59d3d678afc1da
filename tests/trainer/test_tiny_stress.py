"""Turns that go wrong once in thousands: what they are, and that they are counted."""

import random
import re

import pytest

from tests.trainer.tiny_world import CHECKPOINT, profile
from trainer.tiny.__main__ import main
from trainer.tiny.stress import KINDS, stress_turn


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(20))
def test_a_turn_tells_the_fact_or_others_that_nearly_answer(name: str, seed: int) -> None:
    turn = stress_turn(random.Random(seed), profile(), name)
    prompt = "\n".join(message.text() for message in turn.messages)
    asked = re.search(r"What is (the [a-z ]+) of (\w+)\?", prompt)
    assert asked
    told = re.findall(rf"{asked[1].capitalize()} of (\w+) is (?!unknown)\w+\.", prompt.rpartition("unknown.")[2])
    owners = [owner for owner in told if owner != asked[2]]
    assert len(owners) == KINDS[name].others
    assert ("unknown" in turn.completion) == (asked[2] not in told)


def test_a_checkpoints_wrong_turns_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    main(["stress", "--checkpoint", str(CHECKPOINT), "--turns", "10", "--seed", "3"])
    assert capsys.readouterr().out.splitlines() == [
        "others' facts: 0 of 10 turns wrong",
        "prose: 0 of 10 turns wrong",
        "the fact: 0 of 10 turns wrong",
    ]
