"""The options of a read, each on plain doubles; what holds for reads side by side is in test_side_by_side.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memloop.loops.memagent import read_document, segments_of
from memloop.loops.memreread import best_positions, reread_document
from memloop.loops.notes import Notes
from memloop.loops.parsing.reading import Gate, parse_gate
from memloop.loops.steps import ChunkRead, ReadStep, RereadStarted
from memloop.profiles import load_profile
from memloop.wire.reading import Gated, MhmLru, Parallel, ReadingOptions, Retrieved
from tests.fakes.model import ScriptedModel, says
from tests.memloop.reading import Recorder, chunks_of

PROFILE = load_profile("default")
EMPTY = PROFILE.empty_memory


def reads(recorder: Recorder[ReadStep]) -> list[ChunkRead]:
    return [step for step in recorder.steps if isinstance(step, ChunkRead)]


async def test_exit_asks_the_judge_after_a_change_and_stops_when_it_is_silent() -> None:
    script = ["one", "<query>more?</query>", "one", "two", "", r"\boxed{2}"]
    model, recorder = ScriptedModel(script), Recorder[ReadStep]()
    options = ReadingOptions(gated=Gated())
    result = await read_document(
        "q", chunks_of(*"abcde"), model=model, profile=PROFILE, options=options, report=recorder
    )
    assert (result.answer, result.memory, result.usage.llm_calls) == ("2", "two", 6)
    assert [(step.chunk, step.enough) for step in reads(recorder)] == [(0, False), (1, False), (2, True)]


async def test_skip_keeps_the_memory_and_is_reported() -> None:
    model, recorder = ScriptedModel(["fact", "<keep/>", "more <enough/>", "answer"]), Recorder[ReadStep]()
    options = ReadingOptions(gated=Gated(skip=True))
    result = await read_document(
        "q", chunks_of(*"abcd"), model=model, profile=PROFILE, options=options, report=recorder
    )
    assert [(step.memory, step.skipped, step.enough) for step in reads(recorder)] == [
        ("fact", False, False),
        ("fact", True, False),
        ("more", False, True),
    ]
    assert (result.memory, result.degradations.kept) == ("more", 0)


@pytest.mark.parametrize("reply", ["<keep/>.", "Nothing new here. <keep/>", "**<keep/>**"])
async def test_words_beside_a_mark_do_not_replace_a_longer_memory(reply: str) -> None:
    model = ScriptedModel(["Marta's vault code is 731, as she told Ben.", reply, "answer"])
    options = ReadingOptions(gated=Gated(skip=True))
    result = await read_document("q", chunks_of("a", "b"), model=model, profile=PROFILE, options=options)
    assert result.memory == "Marta's vault code is 731, as she told Ben."


async def test_a_memory_that_grew_beside_a_mark_is_the_new_one() -> None:
    model = ScriptedModel(["The code is 731.", "The code is 731. The door is red. <keep/>", "answer"])
    options = ReadingOptions(gated=Gated(skip=True))
    result = await read_document("q", chunks_of("a", "b"), model=model, profile=PROFILE, options=options)
    assert result.memory == "The code is 731. The door is red."


async def test_enough_is_not_believed_of_an_empty_memory_nor_where_only_skip_is_asked_for() -> None:
    model = ScriptedModel(["<enough/>", "fact <enough/>", "answer"])
    result = await read_document(
        "q", chunks_of("a", "b"), model=model, profile=PROFILE, options=ReadingOptions(gated=Gated(skip=True))
    )
    assert (result.memory, result.usage.llm_calls) == ("fact", 3)
    model = ScriptedModel(["fact <enough/>", "<keep/>", "answer"])
    options = ReadingOptions(gated=Gated(skip=True, exit=False))
    assert (
        await read_document("q", chunks_of("a", "b"), model=model, profile=PROFILE, options=options)
    ).memory == "fact"


@pytest.mark.parametrize(
    ("reply", "finish", "gate"),
    [
        ("<keep/>", "stop", Gate("", keep=True, enough=False)),
        ("<think>no</think> <KEEP />", "stop", Gate("", keep=True, enough=False)),
        ("a fact <keep/>", "stop", Gate("a fact", keep=True, enough=False)),
        ("<keep/>.", "stop", Gate("", keep=True, enough=False)),
        ("<keep></keep>", "stop", Gate("", keep=True, enough=False)),
        ("**<keep/>**", "stop", Gate("", keep=True, enough=False)),
        ("`<keep/>`", "stop", Gate("", keep=True, enough=False)),
        ("...", "stop", Gate("", keep=False, enough=False)),
        ("<enough/>", "stop", Gate("", keep=True, enough=True)),
        ("a fact.\n<enough/>", "stop", Gate("a fact.", keep=False, enough=True)),
        ("a fact. <enough/>", "length", Gate("a fact.", keep=False, enough=False)),
        ("", "stop", Gate("", keep=False, enough=False)),
        ("I would keep it: enough.", "stop", Gate("I would keep it: enough.", keep=False, enough=False)),
    ],
)
def test_a_gate_reply_is_what_stands_beside_its_marks(reply: str, finish: str, gate: Gate) -> None:
    assert parse_gate(says(reply, finish_reason=finish)) == gate


def test_the_tiny_profile_has_no_gate() -> None:
    assert "gate" in PROFILE.prompts
    assert "gate" not in load_profile("tiny").prompts


async def test_heads_share_the_memorys_tokens_and_only_the_stalest_is_rewritten() -> None:
    model, recorder = ScriptedModel(["A", "B", "A", "C", "D", "answer"]), Recorder[ReadStep]()
    options = ReadingOptions(mhm_lru=MhmLru(heads=2))
    result = await read_document(
        "q", chunks_of(*"vwxyz"), model=model, profile=PROFILE, options=options, report=recorder
    )
    assert [step.memory for step in reads(recorder)] == ["A", "A\nB", "A\nB", "B\nC", "C\nD"]
    assert model.prompts[0].sampling.max_tokens == PROFILE.budget.memory_tokens // 2
    assert "C\nD" in model.asked[-1]
    assert result.memory == "C\nD"


@given(st.lists(st.text(max_size=2), max_size=30), st.integers(1, 5))
def test_a_rewrite_changes_one_head_and_the_one_changed_last_is_due_last(replies: list[str], heads: int) -> None:
    notes = Notes.blank(EMPTY, heads)
    for reply in replies:
        before, due = notes, notes.stale_first[0]
        notes = notes.rewritten(reply)
        changed = [number for number in range(heads) if notes.heads[number] != before.heads[number]]
        assert changed == ([due] if reply != before.due else [])
        assert notes.stale_first[-1] == due or notes == before
        assert sorted(notes.stale_first) == list(range(heads))


async def test_a_retrieved_reread_visits_the_best_chunks_in_document_order() -> None:
    texts = ["the sea was calm", "in Rome", "ships", "a fact-2 is in Lima there", "which whales", "fact-2 again"]
    script = [*["m"] * 6, "<query>Where is fact-2?</query>", "n", "n", r"\boxed{Lima}", "m", "", "done"]
    recorder, options = Recorder[ReadStep](), ReadingOptions(retrieved=Retrieved(chunks=2))
    model = ScriptedModel(script)
    await reread_document("q", chunks_of(*texts), model=model, profile=PROFILE, options=options, report=recorder)
    started = next(step for step in recorder.steps if isinstance(step, RereadStarted))
    assert started.chunks_total == 2
    assert [(step.chunk, step.done) for step in reads(recorder) if step.pass_number == 2] == [(3, 1), (5, 2)]


async def test_a_query_that_no_chunk_has_a_word_of_reads_them_all() -> None:
    source = chunks_of("alpha", "beta")
    assert await best_positions("gamma?", source, top=1) == [0, 1]
    assert await best_positions("BETA", source, top=1) == [1]


async def test_a_rare_word_weighs_more_than_a_frequent_one() -> None:
    texts = ["the code", "Marta went home", "the code", "the code and the code"]
    assert await best_positions("the code Marta", chunks_of(*texts), top=1) == [1]


@given(st.integers(1, 200), st.integers(2, 64))
def test_segments_cover_the_document_once_in_order_and_evenly(chunks: int, segments: int) -> None:
    parts = segments_of(chunks_of(*["x"] * chunks), segments)
    assert [position for part in parts for position in part.positions] == list(range(chunks))
    sizes = {len(part) for part in parts}
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1


@pytest.mark.parametrize("fields", [{"parallel": {"segments": 1}}, {"mhm_lru": {"heads": 99}}, {"typo": {}}])
def test_options_out_of_range_or_unknown_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ReadingOptions.model_validate(fields)


def test_every_option_is_off_by_default() -> None:
    assert ReadingOptions().model_dump(exclude_none=True) == {"parity": False}
    assert ReadingOptions(parallel=Parallel()).parallel == Parallel(segments=8)
