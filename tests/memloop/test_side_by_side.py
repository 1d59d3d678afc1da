"""Reads whose calls go side by side: the same result, journal and events whatever is faster."""

import asyncio

import pytest

from memloop.loops.journal import Budgeted, BudgetSpent, Journaled
from memloop.loops.memagent import read_document
from memloop.loops.memreread import read_questions, reread_document
from memloop.loops.reader import Reader
from memloop.loops.results import ReadResult
from memloop.loops.side_by_side import AtOnce
from memloop.loops.steps import ChunkRead, Merged, ReadStep
from memloop.ports import Completion, HeldChunks, Prompt
from memloop.profiles import load_profile
from memloop.wire.errors import Unavailable
from memloop.wire.long_read import Strategy
from memloop.wire.reading import MhmLru, Parallel, ReadingOptions
from tests.fakes.model import ScriptedModel
from tests.memloop.reading import Recorder, chunks_of
from tests.memloop.side_by_side_models import Collector, Shuffled
from tests.memloop.test_journal import DictCheckpoints

PROFILE = load_profile("default")
PARALLEL = ReadingOptions(parallel=Parallel(segments=3))
TEXTS = [f"fact-{number} stands here" if number % 2 else "the same prose again" for number in range(10)]
QUESTIONS = ["Which facts?", "What else?", "Which facts?"]


def document() -> HeldChunks:
    return chunks_of(*TEXTS)


async def run(
    model: object, recorder: Recorder[ReadStep], *, strategy: Strategy, options: ReadingOptions, questions: list[str]
) -> list[ReadResult]:
    reader = Reader(model, PROFILE, recorder, options)  # pyright: ignore[reportArgumentType]
    return await read_questions(questions, document(), strategy=strategy, max_rereads=1, reader=reader)


async def test_segments_are_read_side_by_side_and_their_memories_merged_in_order() -> None:
    model, recorder = Collector(), Recorder[ReadStep]()
    watched = Shuffled(model, 1)
    result = await read_document("q", document(), model=watched, profile=PROFILE, options=PARALLEL, report=recorder)
    assert result.answer == "fact-1 fact-3 fact-5 fact-7 fact-9"
    assert watched.most_in_flight == 3
    assert model.sections()[-1] == "fact-3 fact-5\n\nfact-7 fact-9"
    assert result.usage.llm_calls == 10 + 1 + 1
    reads = [step for step in recorder.steps if isinstance(step, ChunkRead)]
    assert [step.done for step in reads] == list(range(1, 11))
    assert {step.chunks_total for step in reads} == {10}
    assert [(step.segment, step.chunk) for step in reads[:4]] == [(0, 0), (1, 3), (2, 6), (0, 1)]
    assert sum(isinstance(step, Merged) for step in recorder.steps) == 1


async def test_segments_with_equal_memories_need_no_merge() -> None:
    model = ScriptedModel(lambda prompt: "fact" if "Updated memory" in prompt.messages[-1].text() else "done")
    result = await read_document("q", document(), model=model, profile=PROFILE, options=PARALLEL)
    assert (result.memory, result.usage.llm_calls) == ("fact", 11)


async def test_one_chunk_is_read_plainly() -> None:
    model = ScriptedModel(["m", "a"])
    await read_document("q", chunks_of("x"), model=model, profile=PROFILE, options=PARALLEL)
    assert [prompt.branch for prompt in model.prompts] == ["", ""]


OPTIONS = {
    "plain": ReadingOptions(),
    "parallel": PARALLEL,
    "heads": ReadingOptions(mhm_lru=MhmLru(heads=2), parallel=Parallel(segments=2)),
}


@pytest.mark.parametrize("strategy", ["memagent", "memreread"])
@pytest.mark.parametrize("questions", [QUESTIONS[:1], QUESTIONS], ids=["one", "three"])
@pytest.mark.parametrize("name", list(OPTIONS))
async def test_a_read_that_died_resumes_to_the_same_end_and_events_though_all_comes_in_another_order(
    strategy: Strategy, name: str, questions: list[str]
) -> None:
    whole, checkpoints, steps = Collector(noise=True), DictCheckpoints(), Recorder[ReadStep]()
    once = await run(
        Journaled(Shuffled(whole, 1), checkpoints), steps, strategy=strategy, options=OPTIONS[name], questions=questions
    )
    paid = len(whole.prompts)
    for seed in (2, 3):
        kept, again = DictCheckpoints(), Recorder[ReadStep]()
        kept.kept = dict(list(checkpoints.kept.items())[: paid // 2])
        model = _FromCheckpoints(checkpoints)
        journal = Journaled(Shuffled(model, seed), kept)
        resumed = await run(journal, again, strategy=strategy, options=OPTIONS[name], questions=questions)
        assert resumed == once
        assert again.steps == steps.steps
        assert journal.replayed == paid // 2


class _FromCheckpoints:
    """Gives each call of each branch the reply that it had: what a deterministic engine would say."""

    def __init__(self, checkpoints: DictCheckpoints) -> None:
        self._journal = Journaled(ScriptedModel([]), checkpoints)

    async def complete(self, prompt: Prompt) -> Completion:
        return await self._journal.complete(prompt)


async def test_equal_questions_side_by_side_are_calls_of_their_own_and_answered_each() -> None:
    results = await run(
        Collector(noise=True), Recorder(), strategy="memagent", options=ReadingOptions(), questions=["q", "q"]
    )
    assert len(results) == 2
    assert results[0].answer != results[1].answer


async def test_questions_go_through_the_document_chunk_by_chunk() -> None:
    model = Collector()
    results = await run(model, Recorder(), strategy="memagent", options=ReadingOptions(), questions=QUESTIONS[:2])
    assert model.sections()[::2] == TEXTS
    assert model.sections()[::2] == model.sections()[1::2]
    assert [result.usage.llm_calls for result in results] == [11, 11]


async def test_steps_carry_the_number_of_their_question() -> None:
    recorder = Recorder[ReadStep]()
    await run(Collector(), recorder, strategy="memreread", options=PARALLEL, questions=QUESTIONS[:2])
    assert {step.asked for step in recorder.steps} == {0, 1}
    assert [step.asked for step in recorder.steps if isinstance(step, ChunkRead)][:6] == [0, 0, 0, 1, 1, 1]


async def test_a_spent_budget_lets_calls_in_flight_end_and_reports_them() -> None:
    recorder = Recorder[ReadStep]()
    model = Budgeted(Shuffled(Collector(), 1), max_llm_calls=7)
    with pytest.raises(BudgetSpent):
        await run(model, recorder, strategy="memagent", options=PARALLEL, questions=["q"])
    assert model.usage.llm_calls == 7
    assert len(recorder.steps) == 7


async def test_a_failed_call_stops_the_branches_beside_it() -> None:
    class Failing:
        def __init__(self) -> None:
            self.cancelled = 0

        async def complete(self, prompt: Prompt) -> Completion:
            if prompt.branch.startswith("s1"):
                raise Unavailable("gone")
            try:
                return await asyncio.Event().wait()  # pyright: ignore[reportReturnType]
            except asyncio.CancelledError:
                self.cancelled += 1
                raise

    model = Failing()
    with pytest.raises(Unavailable):
        await run(model, Recorder(), strategy="memagent", options=PARALLEL, questions=["q"])
    assert model.cancelled == 2


async def test_rereads_read_in_parallel_too() -> None:
    model = Shuffled(Collector(), 4)
    await reread_document("q", chunks_of("a", "b", "c"), model=model, profile=PROFILE, options=PARALLEL)
    assert model.most_in_flight == 3


async def test_no_more_calls_than_allowed_are_in_flight() -> None:
    model = Shuffled(Collector(), 1)
    bounded = AtOnce(model, 2)
    await run(bounded, Recorder(), strategy="memagent", options=PARALLEL, questions=QUESTIONS)
    assert model.most_in_flight == 2
