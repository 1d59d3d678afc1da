import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.ports import Chunk, Splitter
from memloop.profiles import neutralise
from tests.memloop.tokenizers_of_tests import PROSE, byte_level_bpe, metaspace_bpe, word_piece

MAKERS: dict[str, Callable[[], Splitter]] = {
    "bpe": lambda: TokenizerSplitter(byte_level_bpe()),
    "metaspace": lambda: TokenizerSplitter(metaspace_bpe()),
    "wordpiece": lambda: TokenizerSplitter(word_piece()),
    "estimate": EstimatingSplitter,
}
SPLITTERS = {name: make() for name, make in MAKERS.items()}
every_splitter = pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=list(SPLITTERS))

PIECES = st.sampled_from(["Ishmael ", "éé", "\u0301", "漢字", "👩‍👩‍👧", "ﷺ", "\0", "\ud800", " ", "\n\n", "<|im_end|>"])
TEXTS = st.lists(PIECES | st.text(st.characters(exclude_categories=()), max_size=12), max_size=30).map("".join)


def check(chunks: list[Chunk], text: str, chunk_tokens: int, splitter: Splitter) -> None:
    """The promises of a splitter."""
    assert "".join(chunk.text for chunk in chunks) == text
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end] != ""
        assert chunk.tokens == splitter.count(chunk.text)
        assert chunk.tokens <= chunk_tokens or len(chunk.text) == 1


@every_splitter
@settings(max_examples=60)
@given(text=TEXTS, chunk_tokens=st.integers(min_value=1, max_value=40))
def test_chunks_join_to_the_text_and_keep_the_limit(splitter: Splitter, text: str, chunk_tokens: int) -> None:
    check(list(splitter.split(text, chunk_tokens=chunk_tokens)), text, chunk_tokens, splitter)


@every_splitter
@settings(max_examples=60)
@given(blocks=st.lists(TEXTS, max_size=6), chunk_tokens=st.integers(min_value=1, max_value=40))
def test_a_text_that_comes_in_blocks_is_cut_as_the_whole_text_is(
    splitter: Splitter, blocks: list[str], chunk_tokens: int
) -> None:
    streamed = splitter.stream(iter(blocks), chunk_tokens=chunk_tokens)
    assert tuple(streamed) == splitter.split("".join(blocks), chunk_tokens=chunk_tokens)


@every_splitter
def test_a_streamed_text_is_held_one_window_at_a_time(splitter: Splitter) -> None:
    taken = 0

    def blocks() -> Iterator[str]:
        nonlocal taken
        for _ in range(200):
            taken += 1
            yield PROSE

    chunks = splitter.stream(blocks(), chunk_tokens=50)
    ahead = [taken * len(PROSE) - chunk.end for chunk in chunks]
    assert taken == 200
    assert max(ahead) <= 2 * len(PROSE) + 500


@every_splitter
def test_a_chunk_of_no_tokens_is_a_mistake(splitter: Splitter) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        splitter.split("a", chunk_tokens=0)
    with pytest.raises(ValueError, match="at least one token"):
        list(splitter.stream(["a"], chunk_tokens=0))


@pytest.mark.parametrize("chunk_tokens", [1, 7, 50, 333])
def test_prose_is_cut_exactly_where_the_tokens_of_the_whole_document_are(chunk_tokens: int) -> None:
    text = PROSE * 10
    tokenizer = Tokenizer.from_str(byte_level_bpe())
    tokenizer.no_truncation()
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    expected = [tokenizer.decode(ids[at : at + chunk_tokens]) for at in range(0, len(ids), chunk_tokens)]
    chunks = SPLITTERS["bpe"].split(text, chunk_tokens=chunk_tokens)
    assert [chunk.text for chunk in chunks] == expected


def test_a_character_of_several_tokens_is_never_split() -> None:
    text = "漢字👩‍👩‍👧" * 50
    chunks = SPLITTERS["bpe"].split(text, chunk_tokens=10)
    assert all(7 <= chunk.tokens <= 10 for chunk in chunks[:-1])
    assert "".join(chunk.text for chunk in chunks) == text


def test_special_tokens_in_a_document_are_counted_as_the_text_that_the_prompt_shows() -> None:
    splitter = SPLITTERS["bpe"]
    text = "<|im_end|>" * 200
    assert splitter.count(text) == splitter.count(neutralise(text)) > 1000
    check(list(splitter.split(text, chunk_tokens=64)), text, 64, splitter)


@every_splitter
def test_one_word_of_half_a_megabyte_is_cut_in_seconds(splitter: Splitter) -> None:
    text = "xq" * 250_000
    began = time.process_time()
    chunks = list(splitter.split(text, chunk_tokens=5000))
    assert time.process_time() - began < 10
    assert "".join(chunk.text for chunk in chunks) == text
    assert max(chunk.tokens for chunk in chunks) <= 5000


def test_memory_grows_with_the_text_and_not_with_its_tokens() -> None:
    text = PROSE * 4000
    tracemalloc.start()
    chunks = SPLITTERS["bpe"].split(text, chunk_tokens=5000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(chunks) > 50
    assert peak < 3 * len(text)


def test_a_long_text_is_counted_in_blocks_close_to_the_truth() -> None:
    text = PROSE * 2000
    tokenizer = Tokenizer.from_str(byte_level_bpe())
    tokenizer.no_truncation()
    truth = len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert SPLITTERS["bpe"].count(text) == pytest.approx(truth, abs=8)


def test_the_estimate_is_on_the_safe_side_for_prose_code_digits_and_chinese() -> None:
    bpe, estimate = SPLITTERS["bpe"], SPLITTERS["estimate"]
    assert estimate.count(PROSE) >= bpe.count(PROSE)
    assert estimate.count("0123456789" * 10) >= 100
    assert estimate.count("漢字" * 50) >= 100
