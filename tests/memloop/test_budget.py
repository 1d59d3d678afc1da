import asyncio

import pytest

from memloop.loops.journal import Budgeted, BudgetSpent
from memloop.loops.memagent import read_document
from memloop.loops.steps import ChunkRead, ReadStep
from memloop.ports import Completion, Prompt
from memloop.profiles import load_profile
from tests.fakes.model import ScriptedModel
from tests.memloop.reading import Recorder, chunks_of

PROFILE = load_profile("default")
PROMPT = PROFILE.prompt("answer", problem="p", memory="m")


class SlowModel:
    """Answers after a while, and notices when it is no longer wanted."""

    def __init__(self) -> None:
        self.cancelled = False

    async def complete(self, prompt: Prompt) -> Completion:
        try:
            await asyncio.sleep(300)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return Completion("late")


async def test_the_call_over_the_limit_is_not_made_and_the_steps_hold_what_was_read() -> None:
    recorder = Recorder[ReadStep]()
    model = ScriptedModel(["one", "two"])
    budgeted = Budgeted(model, max_llm_calls=2)
    with pytest.raises(BudgetSpent) as caught:
        await read_document("q", chunks_of("a", "b"), model=budgeted, profile=PROFILE, report=recorder)
    assert (caught.value.reason, model.calls, budgeted.usage.llm_calls) == ("max_llm_calls", 2, 2)
    assert isinstance(recorder.steps[-1], ChunkRead)
    assert recorder.steps[-1].memory == "two"


async def test_a_limit_that_is_just_enough_is_enough() -> None:
    budgeted = Budgeted(ScriptedModel(["m", "a"]), max_llm_calls=2, deadline_s=300)
    assert (await read_document("q", chunks_of("a"), model=budgeted, profile=PROFILE)).answer == "a"


async def test_the_deadline_cancels_the_call_in_flight() -> None:
    model = SlowModel()
    with pytest.raises(BudgetSpent) as caught:
        await Budgeted(model, deadline_s=0.02).complete(PROMPT)
    assert caught.value.reason == "deadline"
    assert model.cancelled


async def test_after_the_deadline_no_call_is_made() -> None:
    model = ScriptedModel([])
    with pytest.raises(BudgetSpent):
        await Budgeted(model, deadline_s=0).complete(PROMPT)
    assert model.calls == 0


async def test_a_timeout_of_the_model_itself_is_not_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        await Budgeted(ScriptedModel([TimeoutError()]), deadline_s=300).complete(PROMPT)
