"""``memloop-evaluate updates``: its cases, its scripted writer and its figures."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluation.updates import tiny_facts
from evaluation.updates.cases import Case, cases
from evaluation.updates.command import figures
from evaluation.updates.facts import DEVELOPMENT, HELD_OUT, Attribute
from evaluation.updates.oracle import Oracle
from evaluation.updates.run import Outcome, run
from memloop.profiles import load_profile
from memloop_clients.store import StoreClient
from tests.fakes.model import ScriptedModel
from tests.fakes.real_store import real_store

TINY_HALVES = (tiny_facts.DEVELOPMENT, tiny_facts.HELD_OUT)
CASES = [*cases(DEVELOPMENT, seed=7), *cases(HELD_OUT, seed=7)]
TINY = [case for half in TINY_HALVES for case in cases(half, seed=7, people=tiny_facts.PEOPLE)]


@pytest.mark.parametrize(
    ("made_up", "halves", "of_each"), [(CASES, (DEVELOPMENT, HELD_OUT), 80), (TINY, TINY_HALVES, 96)]
)
def test_there_are_two_hundred_cases_in_two_halves_without_a_common_attribute(
    made_up: Sequence[Case], halves: tuple[Sequence[Attribute], Sequence[Attribute]], of_each: int
) -> None:
    assert Counter(case.kind for case in made_up) == {"changed": of_each, "same": of_each, "new": of_each}
    assert len({case.name for case in made_up}) == len(made_up)
    first, second = ({key for each in half for key in each.keys} for half in halves)
    assert not first & second


@pytest.mark.parametrize("case", [*CASES, *TINY], ids=lambda case: case.name)
def test_the_new_fact_has_a_key_that_is_not_stored(case: Case) -> None:
    assert case.new.key not in {draft.key for draft in case.stored}
    assert len({draft.value for draft in case.stored}) == len(case.stored)
    assert case.new.value not in {draft.value for draft in case.stored}


@pytest.mark.parametrize("kind", ["changed", "same", "new"])
async def test_the_scripted_writer_gets_every_kind_right(kind: str, redis_url: str, tmp_path: Path) -> None:
    chosen = [case for case in CASES if case.kind == kind][:3]
    async with real_store(redis_url, tmp_path) as url:
        client = StoreClient(url)
        outcomes = await run(chosen, store=client, model_of=Oracle, profile=load_profile("default"))
        await client.close()
    assert [one.right for one in outcomes] == [True] * 3


async def test_a_writer_that_updates_whatever_is_listed_merges_wrongly(redis_url: str, tmp_path: Path) -> None:
    chosen = [case for case in CASES if case.kind == "new"][:3]
    async with real_store(redis_url, tmp_path) as url:
        client = StoreClient(url)
        eager = ScriptedModel(lambda prompt: "1: updates 1")
        outcomes = await run(chosen, store=client, model_of=lambda case: eager, profile=load_profile("default"))
        await client.close()
    assert figures(outcomes)["wrongly_merged_percent"] == 100.0


def test_the_figures_are_shares_of_their_kinds() -> None:
    changed, same, new = (next(case for case in CASES if case.kind == kind) for kind in ("changed", "same", "new"))
    outcomes = [
        Outcome(changed, True, 0, 1),
        Outcome(changed, False, 0, 1),
        Outcome(same, True, 0, 1),
        Outcome(new, False, 0, 0),
    ]
    assert figures(outcomes) == {
        "cases": 4,
        "replaced_percent": 50.0,
        "same_kept_percent": 0.0,
        "wrongly_merged_percent": 25.0,
        "calls_per_case": 0.75,
    }
