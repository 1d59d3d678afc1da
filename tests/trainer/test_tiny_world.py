"""The synthetic world: deterministic, closed, and consistent with its own rules."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.tiny_world import examples, profile
from trainer.tiny.prose import book, plant
from trainer.tiny.reading_tasks import Scene, distractor, random_scene, read_example
from trainer.tiny.world import HOME, PEOPLE, PLACES, UNKNOWN, Fact, Question, sought

HOME_OF_MARTA = Fact("Marta", HOME, "Oslo")
METRO_OF_OSLO = Fact("Oslo", "metro code", "482")
TWO_HOPS = Question("Marta", "metro code", 2)


def test_a_seed_fixes_every_example() -> None:
    assert examples(50, seed=3) == examples(50, seed=3)


def test_names_are_distinct() -> None:
    assert len({*PEOPLE, *PLACES}) == len(PEOPLE) + len(PLACES)


def test_the_held_out_prose_is_not_in_the_training_part() -> None:
    held_out, train = book("held_out").text, book("train").text
    windows = [held_out[at : at + 200] for at in range(0, len(held_out) - 200, 997)]
    assert not [window for window in windows if window in train]


@pytest.mark.parametrize(
    ("told", "held"),
    [
        pytest.param((), (Fact("Marta", HOME, UNKNOWN),), id="nothing told: the home is open"),
        pytest.param((METRO_OF_OSLO,), (Fact("Marta", HOME, UNKNOWN),), id="a place alone says nothing"),
        pytest.param(
            (HOME_OF_MARTA,), (HOME_OF_MARTA, Fact("Oslo", "metro code", UNKNOWN)), id="the home opens the second fact"
        ),
        pytest.param((METRO_OF_OSLO, HOME_OF_MARTA), (HOME_OF_MARTA, METRO_OF_OSLO), id="any order within one section"),
    ],
)
def test_what_a_perfect_memory_holds_for_two_hops(told: tuple[Fact, ...], held: tuple[Fact, ...]) -> None:
    assert sought(TWO_HOPS, told) == held


@given(seed=st.integers(0, 10_000))
def test_a_distractor_never_changes_the_memory(seed: int) -> None:
    rng = random.Random(seed)
    scene: Scene = random_scene(rng)
    others = [distractor(rng, scene) for _ in range(4)]
    assert sought(scene.question, (*others, *scene.facts)) == sought(scene.question, scene.facts)


@given(seed=st.integers(0, 10_000))
def test_a_crowded_section_is_full_of_facts(seed: int) -> None:
    crowded = read_example(
        random.Random(seed), profile(), book("train"), section_tokens=240, near_misses=0.0, crowded=True
    )
    text = "\n".join(message.text() for message in crowded.messages)
    told = re.findall(r"The [a-z ]+ (?:of|for) \w+ (?:is|was) \w+", text)
    assert 7 <= len(told) <= 20  # a sparse one has six at most


@given(prose=st.text(alphabet="ab .\n", max_size=80), seed=st.integers(0, 99))
def test_planting_keeps_the_prose_and_the_order_of_the_sentences(prose: str, seed: int) -> None:
    planted = plant(random.Random(seed), prose, ["<1>", "<2>"])
    assert planted.index("<1>") < planted.index("<2>")
    assert planted.replace("<1>", "").replace("<2>", "").replace(" ", "") == prose.replace(" ", "")


def test_a_hasty_reader_overlooks_what_stands_late_in_a_section_and_changes_nothing_else() -> None:
    overlooked = 0
    for seed in range(300):
        careful, hasty = (
            read_example(
                random.Random(seed), profile(), book("train"), section_tokens=200, near_misses=0.4, overlooked=share
            )
            for share in (0.0, 1.0)
        )
        one_hop = careful.completion.count(".") == 1
        if one_hop and hasty.completion != careful.completion:
            overlooked += 1
            prompt, value = careful.messages[-1].text(), careful.completion.strip().rstrip(".").split()[-1]
            assert value in prompt[len(prompt) // 2 :]
            assert hasty.completion.strip().endswith("unknown.")
    assert overlooked > 10
