"""The tiny writer's turns: what the served loop asks, with a reply that it can follow."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
import random
import re

import pytest
import torch
from tokenizers import Tokenizer

from memloop.loops.relating import parse_relations
from memloop.ports import Completion
from memloop.profiles import load_profile
from tests.trainer.tiny_world import CHECKPOINT
from trainer.tiny.example import Example
from trainer.tiny.network import Shape, TinyQwen3, load
from trainer.tiny.paraphrases import HELD_OUT_CODES, noun_of
from trainer.tiny.prose import book
from trainer.tiny.relate_tasks import relate_example
from trainer.tiny.tokenizer import RELATE_LINES, extended, prompt_lines

PROFILE = load_profile("tiny-writer")


def shipped() -> Tokenizer:
    return Tokenizer.from_file(str(CHECKPOINT / "tokenizer.json"))


def turns(count: int, *, seed: int) -> list[Example]:
    rng = random.Random(seed)
    return [relate_example(rng, PROFILE, book("held_out")) for _ in range(count)]


def listed(example: Example) -> dict[int, str]:
    """The stored memories of the prompt, by number."""
    lines = example.messages[-1].text().split("<memories>\n")[1].splitlines()
    stored = (line.split(" ", 5) for line in lines if line.startswith("  stored memory "))
    return {int(words[4]): words[5] for words in stored}


@pytest.mark.parametrize("verb", ["same", "updates", "contradicts", "new"])
def test_a_reply_relates_a_new_memory_to_one_that_is_listed_below_it(verb: str) -> None:
    chosen = [turn for turn in turns(300, seed=3) if turn.kind == verb]
    assert chosen
    for turn in chosen:
        first, *_ = parse_relations(Completion(content=turn.completion))
        assert (first.memory, first.verb) == (1, verb)
        assert first.stored is None if verb == "new" else first.stored in listed(turn)


def test_a_changed_fact_is_compared_with_the_stored_one_of_its_person_and_thing() -> None:
    for turn in (turn for turn in turns(300, seed=4) if turn.kind == "updates"):
        first, *_ = parse_relations(Completion(content=turn.completion))
        assert first.stored is not None
        new, held = turn.completion.splitlines()[1].split(". ", 1)
        value = held.removesuffix(f", in {first.stored}.").rpartition(" ")[2]
        assert value in listed(turn)[first.stored]
        assert value not in new


def test_no_held_out_code_is_related_in_training() -> None:
    text = " ".join(turn.messages[-1].text() for turn in turns(500, seed=5))
    assert not {noun_of(code) for code in HELD_OUT_CODES} & {*re.findall(r"[a-z]+", text)}


def test_the_writers_prompts_are_single_tokens_behind_those_of_the_tiny_model() -> None:
    old, new = shipped(), extended(shipped(), PROFILE)
    assert [line for line in (*prompt_lines(PROFILE), *RELATE_LINES) if len(new.encode(line).ids) != 1] == []
    assert new.get_vocab_size() > old.get_vocab_size()
    prose = book("held_out").text[:2000]
    assert new.encode(prose).ids == old.encode(prose).ids


def test_a_checkpoint_of_fewer_tokens_keeps_its_rows() -> None:
    torch.manual_seed(0)
    small, grown = TinyQwen3(Shape(40)), TinyQwen3(Shape(43))
    fresh = grown.model.embed_tokens.weight.detach().clone()
    load(grown, dict(small.state_dict()))
    rows = grown.model.embed_tokens.weight
    assert torch.equal(rows[:40], small.model.embed_tokens.weight)
    assert torch.equal(rows[40:], fresh[40:])
