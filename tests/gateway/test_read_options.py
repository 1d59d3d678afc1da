"""Options and many questions through the gateway's reads: records, events, budgets, resuming, refusals."""

from collections.abc import Sequence

import pytest

from gateway.long_read.plan import check_options
from gateway.long_read.run import new_record, run_read
from memloop.loops.parity import PUBLISHED
from memloop.ports import ChatModel, Prompt
from memloop.profiles import load_profile
from memloop.wire.errors import EngineError, Unavailable, Unprocessable
from memloop.wire.long_read import Document, LongRead, ReadEvent, SaveTo
from tests.fakes.model import ScriptedModel, says
from tests.gateway.redis_view import connected, keys
from tests.gateway.test_reading_plan import asked as request_of
from tests.gateway.test_reading_plan import planned
from tests.gateway.test_reads import job, read, shown, tools
from tests.memloop.side_by_side_models import Shuffled
from tests.memloop.test_journal import DictCheckpoints

BOTH = ["Where?", "Who?"]


def by_question(prompt: object) -> str:
    text = str(prompt)
    who = "Who?" in text
    if "boxed" in text:
        return r"\boxed{Ann}" if who else r"\boxed{Rome}"
    return "who memory" if who else "where memory"


async def test_each_question_has_an_output_and_its_events_carry_its_index(redis_url: str) -> None:
    asked = job(question=None, questions=BOTH)
    record, events = await read(redis_url, asked, ScriptedModel(by_question))
    assert [(each.question, each.output_text, each.memory) for each in record.outputs] == [
        ("Where?", "Rome", "where memory"),
        ("Who?", "Ann", "who memory"),
    ]
    assert (record.output_text, record.memory, record.usage.llm_calls) == ("", "", 6)
    chunks = [(event.question_index, event.chunk) for event in events if event.type == "long_read.chunk.completed"]
    assert chunks == [(0, 0), (1, 0), (0, 1), (1, 1)]
    deltas = [(event.question_index, event.delta) for event in events if event.delta]
    assert deltas == [(0, "Rome"), (1, "Ann")]
    assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_a_spent_budget_answers_every_question_that_has_a_memory(redis_url: str) -> None:
    asked = job(question=None, questions=BOTH, max_llm_calls=4)
    record, _ = await read(redis_url, asked, ScriptedModel(by_question))
    assert (record.status, record.usage.llm_calls) == ("incomplete", 4)
    assert [each.output_text for each in record.outputs] == ["Rome", "Ann"]


async def test_segments_are_reported_and_a_budget_spent_among_them_answers_from_all_memories(redis_url: str) -> None:
    seen: list[str] = []

    def script(prompt: object) -> str:
        seen.append(str(prompt))
        return r"\boxed{x}" if "boxed" in str(prompt) else f"memory {len(seen)}"

    asked = job(
        document=Document(text="one two three four. " * 24), options={"parallel": {"segments": 2}}, max_llm_calls=5
    )
    record, events = await read(redis_url, asked, ScriptedModel(script))
    told = [(event.segment, event.chunk) for event in events if event.type == "long_read.chunk.completed"]
    assert told == [(0, 0), (1, 2), (0, 1), (1, 3)]
    assert record.status == "incomplete"
    assert record.memory == "memory 3\nmemory 4"
    assert "memory 3\\nmemory 4" in seen[-1]
    assert record.output_text == "x"


async def test_degradations_are_in_the_record(redis_url: str) -> None:
    script = ["", says("One. Tw", finish_reason="length"), "done"]
    record, _ = await read(redis_url, job(), script)
    assert (record.degradations.kept, record.degradations.truncated, record.degradations.unusable) == (1, 1, 0)
    assert record.memory == "One."


async def test_each_questions_memory_is_saved_under_its_question(redis_url: str) -> None:
    asked = job(question=None, questions=BOTH, save_to_memory=SaveTo(user_id="alice"))
    for _ in range(2):
        await read(redis_url, asked, ScriptedModel(by_question))
    async with connected(redis_url) as redis:
        assert len(await keys(redis, "*:job:evt_*")) == 2


@pytest.mark.parametrize(
    ("profile", "options", "param"),
    [
        ("tiny", {"parity": True}, "options.parity"),
        ("default", {"parity": True, "parallel": {}}, "options.parity"),
        ("default", {"retrieved": {}}, "options.retrieved"),
        ("tiny", {"gated": {"skip": True}}, "options.gated.skip"),
        ("tiny", {"mhm_lru": {"heads": 8}}, "options.mhm_lru.heads"),
    ],
)
def test_an_option_that_cannot_work_is_refused_by_name(profile: str, options: dict[str, object], param: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        check_options(request_of(options=options), load_profile(profile))
    assert (refused.value.code, refused.value.param) == ("option_not_applicable", param)


async def test_evidence_marks_supported_and_unsupported_statements(redis_url: str) -> None:
    document = "Long ago. Ann lives in Rome. She was happy there. " * 2
    asked = job(evidence=True, question="Where does Ann live?", document=Document(text=document), chunk_tokens=500)
    record, _ = await read(redis_url, asked, ["Ann lives in Rome. Bob lives in Lima.", r"\boxed{Rome}"])
    told = [(each.statement, each.source, each.supported, each.start) for each in record.evidence]
    assert told == [
        ("Ann lives in Rome.", "memory", True, 10),
        ("Ann lives in Rome.", "memory", True, 60),
        ("Bob lives in Lima.", "memory", False, None),
        ("Rome", "output_text", True, 10),
        ("Rome", "output_text", True, 60),
    ]
    assert all(document[each.start : each.end] == each.text for each in record.evidence if each.supported)


class _Comparing:
    """Calls every passage equally near; without a cosine it is away."""

    def __init__(self, cosine: float | None) -> None:
        self._cosine = cosine

    async def __call__(self, pairs: Sequence[tuple[str, Sequence[str]]]) -> Sequence[Sequence[float]]:
        if self._cosine is None:
            raise Unavailable("the store is away")
        return [[self._cosine for _ in passages] for _, passages in pairs]


@pytest.mark.parametrize(("cosine", "similar"), [(0.9, True), (0.2, False), (None, False)], ids=["near", "far", "away"])
async def test_a_paraphrase_is_similar_and_never_supported(redis_url: str, cosine: float | None, similar: bool) -> None:
    document = "Long ago. The key of the pier is kept by Ann. She was happy there. "
    asked = job(evidence=True, question="Who?", document=Document(text=document), chunk_tokens=500)
    script = ["At the pier a key is held by Ann.", r"\boxed{}"]
    record, _ = await read(redis_url, asked, script, similarity=_Comparing(cosine))
    [entry] = [each for each in record.evidence if each.source == "memory"]
    assert (entry.supported, entry.similar) == (False, similar)
    assert entry.similarity == (cosine if similar else None)
    assert entry.text == ("The key of the pier is kept by Ann." if similar else None)


async def test_each_question_has_evidence_of_its_own_and_an_unread_one_none(redis_url: str) -> None:
    asked = job(question=None, questions=BOTH, evidence=True, max_llm_calls=2)
    record, _ = await read(redis_url, asked, ScriptedModel(by_question))
    assert [each.evidence for each in record.outputs] == [(), ()]
    record, _ = await read(redis_url, job(question=None, questions=BOTH, evidence=True), ScriptedModel(by_question))
    assert [[each.statement for each in output.evidence] for output in record.outputs] == [
        ["where memory", "Rome"],
        ["who memory", "Ann"],
    ]


def test_parity_takes_the_published_numbers_and_no_others() -> None:
    plan = planned(options={"parity": True}, chunk_tokens=5000)
    assert plan.budget == PUBLISHED
    assert plan.profile.prompts["answer"].sampling.max_tokens == 1024
    assert plan.profile.prompts["judge"].sampling.max_tokens == 5120  # 8,192, less what its window keeps for the prompt
    with pytest.raises(Unprocessable, match="chunk_tokens of 5000"):
        planned(options={"parity": True}, chunk_tokens=4000)


@pytest.mark.parametrize("died_after", [1, 4, 7, 9])
async def test_a_read_of_segments_and_questions_that_died_repeats_its_events_and_goes_on(
    redis_url: str, died_after: int
) -> None:
    asked = job(
        question=None,
        questions=BOTH,
        document=Document(text="one two three four. " * 24),
        options={"parallel": {"segments": 2}},
    )
    checkpoints, calls = DictCheckpoints(), 0

    def dies(prompt: Prompt) -> str | Exception:
        nonlocal calls
        calls += 1
        return by_question(prompt) if calls <= died_after else EngineError("gone")

    async def run(model: ChatModel, events: list[ReadEvent]) -> LongRead:
        async def publish(event: ReadEvent, record: LongRead) -> None:
            del record
            events.append(event)

        async with tools(redis_url, model) as made:
            return await run_read(
                asked,
                new_record(asked),
                plan=await made.plan_of(asked.request),
                tools=made,
                checkpoints=checkpoints,
                publish=publish,
                started_at=1e12,
                first_sequence=0,
            )

    before: list[ReadEvent] = []
    after: list[ReadEvent] = []
    with pytest.raises(EngineError):
        await run(Shuffled(ScriptedModel(dies), 1), before)
    model = ScriptedModel(by_question)
    record = await run(Shuffled(model, 2), after)
    assert [shown(event) for event in after[: len(before)]] == [shown(event) for event in before]
    assert [each.output_text for each in record.outputs] == ["Rome", "Ann"]
    assert (record.usage.llm_calls, model.calls) == (10, 10 - min(died_after, 10))
