"""Turns that go wrong once in thousands: what they are, and that they are counted."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
import random
import re
from pathlib import Path

import pytest
import torch

from tests.trainer.tiny_world import CHECKPOINT, profile, tokenizer
from trainer.tiny.command import main
from trainer.tiny.export import export
from trainer.tiny.network import Shape, TinyQwen3
from trainer.tiny.stress import KINDS, stress, stress_turn


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(20))
def test_a_turn_states_the_fact_or_others_that_nearly_answer(name: str, seed: int) -> None:
    turn = stress_turn(random.Random(seed), profile(), name)
    prompt = "\n".join(message.text() for message in turn.messages)
    asked = re.search(r"What is (the [a-z ]+) of (\w+)\?", prompt)
    assert asked
    told = re.findall(rf"{asked[1].capitalize()} of (\w+) is (?!unknown)\w+\.", prompt.rpartition("unknown.")[2])
    owners = [owner for owner in told if owner != asked[2]]
    assert len(owners) == KINDS[name].others
    assert ("unknown" in turn.completion) == (asked[2] not in told)


def test_an_untrained_checkpoint_is_wrong_at_every_turn(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = TinyQwen3(Shape(tokenizer().get_vocab_size()))
    export(tmp_path, network.state_dict(), network.shape, tokenizer())
    assert stress(tmp_path, turns=3, seed=1) == dict.fromkeys(KINDS, (0, 3))


def test_the_shipped_checkpoints_wrong_turns_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["stress", "--checkpoint", str(CHECKPOINT), "--turns", "10", "--seed", "3"])
    assert capsys.readouterr().out.splitlines() == [
        "others' facts: 0 of 10 turns wrong",
        "prose: 0 of 10 turns wrong",
        "the fact: 0 of 10 turns wrong",
    ]
