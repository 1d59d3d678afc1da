"""The evaluation runs the loops that are served, counts errors as wrong, and states its doubt."""

import random
import re

import pytest

from memloop.loops.results import AddMemories, BufferTurns, Decision, IgnoreTurns, InvalidOutput
from memloop.ports import Completion, Prompt
from memloop.wire.errors import Unavailable
from memloop.wire.memory import MemoryDraft
from tests.trainer.perfect_reader import PerfectReader
from tests.trainer.tiny_world import profile
from trainer.decisions import decided_by
from trainer.tiny.conversations import random_conversation
from trainer.tiny.documents import random_document
from trainer.tiny.evaluate import Score, loop_trials, score


class DeadEngine:
    async def complete(self, prompt: Prompt) -> Completion:
        raise Unavailable("the engine cannot be reached")


async def test_a_perfect_reader_is_right_wherever_one_pass_can_be() -> None:
    trials = loop_trials(PerfectReader(), profile(), random.Random(0), documents=3)
    scores = {name: await score(name, of_kind) for name, of_kind in trials.items() if "64x" not in name}
    accuracy = {name: each.accuracy for name, each in scores.items()}
    assert {name for name, share in accuracy.items() if share < 1.0} == {"memagent/2-hop/1x", "memagent/2-hop/4x"}
    assert accuracy["memagent/2-hop/1x"] == accuracy["memagent/2-hop/4x"] == 0.0


async def test_an_engine_that_fails_is_wrong_and_counted() -> None:
    trials = loop_trials(DeadEngine(), profile(), random.Random(0), documents=2)
    assert await score("x", trials["memagent/1-hop/1x"]) == Score("x", right=0, total=2, failed=2)


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [
        pytest.param(10, 10, 0.7225, 1.0, id="all right"),
        pytest.param(0, 10, 0.0, 0.2775, id="none right"),
        pytest.param(5, 10, 0.2366, 0.7634, id="half right"),
        pytest.param(0, 0, 0.0, 1.0, id="nothing known"),
    ],
)
def test_intervals_are_wilsons(right: int, total: int, low: float, high: float) -> None:
    assert Score("x", right, total).interval() == pytest.approx((low, high), abs=1e-4)


def test_a_document_has_its_chunks_in_order_and_its_fact_once() -> None:
    document = random_document(random.Random(1), chunks=8, chunk_tokens=256, hops=1, distractors_per_chunk=1.0)
    assert [chunk.index for chunk in document.chunks] == list(range(8))
    assert all(left.end == right.start for left, right in zip(document.chunks, document.chunks[1:], strict=False))
    assert sum(document.answer in chunk.text for chunk in document.chunks) >= 1


def test_a_crowded_document_has_only_facts_that_nearly_answer() -> None:
    crowded = random_document(
        random.Random(2), chunks=2, chunk_tokens=256, hops=1, distractors_per_chunk=8.0, near_misses=1.0
    )
    [(attribute, entity)] = re.findall(r"What is the (.+) of (.+)\?", crowded.question)
    told = re.findall(r"The ([a-z ]+) of (\w+) is (\w+)\.", "".join(chunk.text for chunk in crowded.chunks))
    assert len(told) == 2 * 8 + 1
    assert [value for *key, value in told if key == [attribute, entity]] == [crowded.answer]
    assert all(attribute == other or entity == owner for other, owner, _ in told)


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        pytest.param(AddMemories((MemoryDraft(key="k", value="A fact."),), "s"), ("add", "A fact."), id="add"),
        pytest.param(BufferTurns("r"), ("buffer",), id="buffer"),
        pytest.param(IgnoreTurns("r"), ("ignore",), id="ignore"),
        pytest.param(InvalidOutput("p", "raw"), ("invalid",), id="invalid"),
    ],
)
def test_decisions_are_compared_by_what_they_store(decision: Decision, told: tuple[str, ...]) -> None:
    assert decided_by(decision) == told


def test_conversations_cover_every_decision() -> None:
    rng = random.Random(4)
    assert {random_conversation(rng).gold[0] for _ in range(60)} == {"add", "buffer", "ignore"}
