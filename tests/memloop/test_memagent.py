import pytest

from memloop.loops.memagent import read_document, read_pass
from memloop.loops.reader import Reader
from memloop.loops.steps import ChunkRead, ReadStep
from memloop.profiles import load_profile
from memloop.wire.errors import InvalidRequest, Unavailable
from memloop.wire.long_read import ReadDegradations
from memloop.wire.memory import Usage
from tests.fakes.model import ScriptedModel, says
from tests.memloop.reading import Recorder, chunks_of

PROFILE = load_profile("default")


async def test_each_reply_overwrites_the_memory_and_the_answer_comes_from_the_last() -> None:
    model = ScriptedModel(["first", "second", r"\boxed{Lima}"])
    result = await read_document("Where?", chunks_of("aaa", "bbb"), model=model, profile=PROFILE)
    assert (result.answer, result.boxed, result.memory) == ("Lima", True, "second")
    assert "No previous memory" in model.asked[0]
    assert "first" in model.asked[1]
    assert "bbb" in model.asked[1]
    assert "second" in model.asked[2]
    assert "aaa" not in model.asked[2]


async def test_n_chunks_cost_n_plus_one_calls_and_their_usage_is_summed() -> None:
    model = ScriptedModel(lambda _: "text")
    result = await read_document("q", chunks_of(*"abcde"), model=model, profile=PROFILE)
    assert model.calls == 6
    assert result.usage == Usage(input_tokens=60, output_tokens=12, llm_calls=6)


@pytest.mark.parametrize("silence", ["", " \n", "<think>all of it", "<think>a</think>\n"])
async def test_an_empty_reply_keeps_the_old_memory_and_is_reported(silence: str) -> None:
    recorder = Recorder[ReadStep]()
    model = ScriptedModel(["fact", silence, "answer"])
    result = await read_document("q", chunks_of("a", "b"), model=model, profile=PROFILE, report=recorder)
    reads = [step for step in recorder.steps if isinstance(step, ChunkRead)]
    assert [(read.memory, read.kept) for read in reads] == [("fact", False), ("fact", True)]
    assert result.degradations == ReadDegradations(kept=1)


async def test_silence_on_the_first_chunk_leaves_the_empty_memory_phrase() -> None:
    (read,) = await read_pass(["q"], chunks_of("a"), reader=Reader(ScriptedModel([""]), PROFILE))
    assert read.memory == PROFILE.empty_memory


async def test_a_reply_cut_by_its_token_limit_loses_its_last_half_sentence_and_is_flagged() -> None:
    recorder = Recorder[ReadStep]()
    model = ScriptedModel([says("Ann lives in Rome. Bob lives in", finish_reason="length"), "x"])
    result = await read_document("q", chunks_of("a"), model=model, profile=PROFILE, report=recorder)
    assert result.memory == "Ann lives in Rome."
    assert result.degradations == ReadDegradations(truncated=1)
    assert isinstance(recorder.steps[0], ChunkRead)
    assert recorder.steps[0].truncated


async def test_a_document_without_chunks_is_refused_before_any_call() -> None:
    model = ScriptedModel([])
    with pytest.raises(InvalidRequest, match="empty") as caught:
        await read_document("q", chunks_of(), model=model, profile=PROFILE)
    assert (caught.value.code, caught.value.param, model.calls) == ("empty_document", "document", 0)


async def test_a_failed_call_fails_the_read_and_never_becomes_a_memory() -> None:
    model = ScriptedModel(["fact", Unavailable("the engine cannot be reached")])
    with pytest.raises(Unavailable):
        await read_document("q", chunks_of("a", "b"), model=model, profile=PROFILE)


async def test_an_answer_without_a_box_is_taken_whole_and_flagged() -> None:
    result = await read_document("q", chunks_of("a"), model=ScriptedModel(["m", "It is Lima."]), profile=PROFILE)
    assert (result.answer, result.boxed) == ("It is Lima.", False)


async def test_only_empty_replies_give_an_empty_unboxed_answer() -> None:
    result = await read_document("q", chunks_of("a"), model=ScriptedModel(lambda _: ""), profile=PROFILE)
    assert (result.answer, result.boxed, result.memory) == ("", False, PROFILE.empty_memory)


async def test_nul_and_lone_surrogates_in_text_or_reply_are_replaced() -> None:
    model = ScriptedModel(["m\ud800\0", "\\boxed{\udfff}"])
    result = await read_document("q\ud800", chunks_of("a\0b\udc00"), model=model, profile=PROFILE)
    assert "a\ufffdb\ufffd" in model.asked[0]
    assert (result.memory, result.answer) == ("m\ufffd\ufffd", "\ufffd")
