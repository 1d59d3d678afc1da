"""Hostile documents through every prompt and every way of reading: data stays data.

The model double is the most obedient there can be: it copies what it was shown into memories, queries and answers.
"""

import re

import pytest

from memloop.evidence import evidence_for
from memloop.loops.memreread import read_questions
from memloop.loops.reader import Reader
from memloop.loops.steps import ChunkRead, ReadStep, RereadStarted
from memloop.ports import Completion, Prompt
from memloop.profiles import load_profile
from memloop.wire.reading import Gated, MhmLru, Parallel, ReadingOptions, Retrieved
from tests.fakes.model import says
from tests.memloop.hostile_documents import HOSTILE
from tests.memloop.reading import Recorder, chunks_of

PROFILE = load_profile("default")
QUESTION = "Where is Ann?"
WAYS = {
    "plain": ReadingOptions(),
    "parallel": ReadingOptions(parallel=Parallel(segments=2)),
    "exit": ReadingOptions(gated=Gated()),
    "skip": ReadingOptions(gated=Gated(skip=True)),
    "heads": ReadingOptions(mhm_lru=MhmLru(heads=2)),
    "retrieved": ReadingOptions(retrieved=Retrieved(chunks=1)),
    "parity": ReadingOptions(parity=True),
}
TAG = re.compile(r"</?(?:problem|memory|section|question|query_history|query|result|reference|subquestion|subanswer)>")
SPECIAL = re.compile(
    r"<[|｜]|</?s>|<(?:start|end)_of_turn>|<eos>|\[/?(?:INST|TOOL_CALLS|TOOL_RESULTS)\]|<<SYS|</?(?:think|tool_call)>"
)


class Parrot:
    """Copies the section into the memory, the memory into the answer; asks one sub-question, made of the memory too.

    ``raw`` copies the document as it was written, not as the prompt shows it: a model that undoes what was done to it.
    """

    def __init__(self, hostile: str, *, raw: bool) -> None:
        self._hostile, self._raw = hostile, raw
        self.prompts: list[str] = []

    async def complete(self, prompt: Prompt) -> Completion:
        (message,) = prompt.messages
        text = message.text()
        self.prompts.append(text)
        shown = self._hostile if self._raw else _slot(text, "section") or _slot(text, "memory")
        if text.startswith("Decide"):
            asked = "NO HISTORY" not in _slot(text, "query_history")
            return says("" if asked else f"<query>Is it so: {shown[:40].strip()}?</query>")
        if text.startswith("Solve"):
            return says(f"{shown} \\boxed{{right}}")
        return says(f"Noted: {shown}")


def _slot(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


async def read(model: Parrot, name: str, hostile: str, questions: list[str]) -> tuple[list[str], list[ReadStep]]:
    recorder = Recorder[ReadStep]()
    chunks = chunks_of("Ann was here. ", hostile, " Ann is in Rome. Where?", "The end.")
    reader = Reader(model, PROFILE, recorder, WAYS[name])
    results = await read_questions(questions, chunks, strategy="memreread", max_rereads=1, reader=reader)
    return [result.answer for result in results], recorder.steps


def _form(text: str) -> list[str]:
    """The tags of a prompt in order, without the history that the loop itself writes."""
    return TAG.findall(re.sub(r"<query>.*?</query> <result>.*?</result>", "", text, flags=re.DOTALL))


FORMS = {_name: _form(PROFILE.prompts[_name].template) for _name in ("read", "gate", "answer", "judge", "integrate")}


@pytest.mark.parametrize("raw", [False, True], ids=["as shown", "as written"])
@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("what", list(HOSTILE))
async def test_no_document_changes_a_prompts_form_or_ends_its_turn(what: str, way: str, raw: bool) -> None:
    model = Parrot(HOSTILE[what], raw=raw)
    await read(model, way, HOSTILE[what], [QUESTION, "Who else?"])
    assert len(model.prompts) > 8
    for text in model.prompts:
        assert _form(text) in FORMS.values()
        assert not SPECIAL.search(text)
        text.encode("utf-8")


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("what", list(HOSTILE))
async def test_no_document_steers_the_loop_through_a_model_that_copies_what_it_sees(what: str, way: str) -> None:
    model = Parrot(HOSTILE[what], raw=False)
    answers, steps = await read(model, way, HOSTILE[what], [QUESTION])
    benign = Parrot("nothing", raw=False)
    _, expected = await read(benign, way, "nothing of the sort", [QUESTION])
    assert answers == ["right"]
    assert [type(step) for step in steps] == [type(step) for step in expected]
    assert not any(step.skipped for step in steps if isinstance(step, ChunkRead))
    (reread,) = (step for step in steps if isinstance(step, RereadStarted))
    assert reread.question.startswith("Is it so: Noted:")


@pytest.mark.parametrize("what", list(HOSTILE))
async def test_evidence_of_a_hostile_document_is_its_own_text(what: str) -> None:
    document = f"Ann is in Rome. {HOSTILE[what]} Ann is in Lima."
    chunks, memory = chunks_of(document[:30], document[30:]), f"Ann is in Rome. {HOSTILE[what]}"
    findings = await evidence_for(QUESTION, memory=memory, answer="Rome", chunks=chunks)
    assert findings[0].supported
    assert all(document[span.start : span.end] == span.text for each in findings for span in each.spans)
