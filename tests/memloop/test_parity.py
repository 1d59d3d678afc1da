"""Parity: the same prompts, in the same order and with the same decoding, as the papers' loops written out here."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from memloop.chunking import TokenizerSplitter
from memloop.loops.memagent import read_document
from memloop.loops.memreread import reread_document
from memloop.loops.parity import PUBLISHED, as_published
from memloop.ports import Completion, Prompt, Sampling
from memloop.profiles import Markup, Origin, load_profile
from memloop.profiles.profile import PromptName
from memloop.wire.reading import ReadingOptions
from tests.fakes.model import says
from tests.memloop.reading import chunks_of
from tests.memloop.tokenizers_of_tests import PROSE, byte_level_bpe

PROFILE = as_published(load_profile("default"))
PARITY = ReadingOptions(parity=True)
CUT = says("Half a sentence. And the other ha", finish_reason="length")
REPLIES = st.sampled_from(
    [
        says("A memory."),
        says("Other words"),
        CUT,
        says("<think>hm</think> Thought over."),
        says(r"So \boxed{Lima} it is."),
        says("\n\nA memory with blank edges.\n"),
        says("\n \\boxed{Quito}\n\n"),
    ]
)
VERDICTS = st.sampled_from([says(""), says("<query>Where is Bob?</query>"), says("It suffices.")])


class Transcript:
    """Answers reads and answers from one list of replies, verdicts from another, and keeps every prompt."""

    def __init__(self, replies: Sequence[Completion], verdicts: Sequence[Completion]) -> None:
        self._replies, self._verdicts = iter(replies), iter(verdicts)
        self.asked: list[tuple[str, Sampling]] = []

    async def complete(self, prompt: Prompt) -> Completion:
        text = prompt.messages[-1].text()
        self.asked.append((text, prompt.sampling))
        return next(self._verdicts if text.startswith("Decide") else self._replies, says("the end"))

    async def ask(self, name: PromptName, **slots: str) -> str:
        """One prompt of the paper's loop: the reply as it is, or what follows its thinking."""
        content = (await self.complete(PROFILE.prompt(name, **slots))).content
        return content.split("</think>")[-1].strip() if "</think>" in content else content


async def published_pass(it: Transcript, question: str, texts: Sequence[str]) -> str:
    """MemAgent, section 3: every reply overwrites the memory, as it is."""
    memory = "No previous memory"
    for text in texts:
        memory = await it.ask("read", problem=question, memory=memory, section=text)
    return memory


async def published_reread(it: Transcript, question: str, texts: Sequence[str], rereads: int) -> None:
    """MemReread, algorithm 1."""
    memory, history = await published_pass(it, question, texts), ""
    for _ in range(rereads):
        history_slot = history.strip() or PROFILE.no_history
        verdict = await it.ask("judge", question=question, memory=memory, query_history=Markup(history_slot))
        if "<query>" not in verdict:
            break
        query = verdict.split("<query>")[1].split("</query>")[0]
        sub_memory = await published_pass(it, query, texts)
        reply = await it.ask("answer", problem=query, memory=sub_memory)
        history += f"\n<query>{query}</query> <result>{reply}</result>"
        memory = await it.ask("integrate", question=question, memory=memory, subquestion=query, subanswer=reply)
    await it.ask("answer", problem=question, memory=memory)


@given(st.lists(REPLIES, min_size=30, max_size=30), st.lists(VERDICTS, min_size=3, max_size=3), st.integers(1, 4))
async def test_memreread_asks_what_the_paper_asks(
    replies: list[Completion], verdicts: list[Completion], chunks: int
) -> None:
    texts = [f"section {number}" for number in range(chunks)]
    paper, ours = Transcript(replies, verdicts), Transcript(replies, verdicts)
    await published_reread(paper, "Where is Ann?", texts, rereads=2)
    await reread_document("Where is Ann?", chunks_of(*texts), model=ours, profile=PROFILE, options=PARITY)
    assert ours.asked == paper.asked


@given(st.lists(REPLIES, min_size=9, max_size=9), st.integers(1, 8))
async def test_memagent_asks_what_the_paper_asks(replies: list[Completion], chunks: int) -> None:
    texts = [f"section {number}" for number in range(chunks)]
    paper, ours = Transcript(replies, []), Transcript(replies, [])
    memory = await published_pass(paper, "Where is Ann?", texts)
    await paper.ask("answer", problem="Where is Ann?", memory=memory)
    await read_document("Where is Ann?", chunks_of(*texts), model=ours, profile=PROFILE, options=PARITY)
    assert ours.asked == paper.asked


def test_the_published_numbers() -> None:
    assert (PUBLISHED.chunk_tokens, PUBLISHED.memory_tokens, PUBLISHED.window_tokens) == (5000, 1024, 8192)
    for name in ("read", "answer", "integrate"):
        assert PROFILE.prompts[name].sampling == Sampling(max_tokens=1024, temperature=0.7, top_p=0.95)
    assert PROFILE.empty_memory == "No previous memory"


@pytest.mark.parametrize(("window", "judge"), [(40_960, 8192), (11_264, 8192), (8192, 5120)])
def test_the_judge_has_8192_tokens_or_what_the_window_leaves(window: int, judge: int) -> None:
    default = load_profile("default")
    profile = as_published(replace(default, budget=replace(default.budget, window_tokens=window)))
    assert profile.prompts["judge"].sampling == Sampling(max_tokens=judge, temperature=0.7, top_p=0.95)


def test_parity_passes_sub_answers_on_whole_and_takes_the_published_words() -> None:
    tiny = replace(load_profile("tiny"), empty_memory="nothing", no_history="never")
    published = as_published(tiny)
    assert (published.subanswer, published.empty_memory, published.no_history) == (
        *("whole", "No previous memory", "NO HISTORY"),
    )


def test_parity_keeps_the_words_of_imported_prompts() -> None:
    imported = replace(
        load_profile("default"), empty_memory="nothing", no_history="never", origin=Origin("made-up", {})
    )
    published = as_published(imported)
    assert (published.empty_memory, published.no_history) == ("nothing", "never")


def test_chunks_are_consecutive_runs_of_5000_tokens_of_the_whole_document() -> None:
    text = PROSE * 260
    tokenizer = Tokenizer.from_str(byte_level_bpe())
    tokenizer.no_truncation()
    ends = [end for _, end in tokenizer.encode(text, add_special_tokens=False).offsets]
    chunks = TokenizerSplitter(byte_level_bpe()).split(text, chunk_tokens=PUBLISHED.chunk_tokens)
    assert [chunk.end for chunk in chunks] == [*ends[4999::5000], len(text)]
    assert len(chunks) > 3
