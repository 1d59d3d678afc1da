"""The direct reader: one prompt with the whole document, and what of a document fits into a window."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.ruler.readers import without_middle
from inference.profile_import.importing import import_prompts, write_profile
from memloop.chunking import EstimatingSplitter
from memloop.profiles import profile_files, profile_from_files
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest
from tests.evaluation.ruler_rig import SETUP, evaluated, evaluation, means, records_of
from tests.fakes.harbour_engine import HarbourEngine, prompt_of
from tests.fakes.published_sources import write_memagent

DIRECT = replace(SETUP, kind="direct")
ITEMS = 9
FORM = 'Form: "Therefore, the answer is (your answer)".'


async def test_a_document_is_read_in_one_call(tmp_path: Path) -> None:
    async with HarbourEngine().running() as engine:
        asked = evaluation(tmp_path, [engine.url], setup=DIRECT)
        found = await evaluated(asked)
    assert means(found)["hqa 8"] == {
        "published": 1.0,
        "published_plain": 0.0,
        "strict": 1.0,
        "em": 1.0,
        "f1": 1.0,
        "sub_em": 1.0,
    }
    assert {record.calls for record in records_of(asked)} == {1}
    assert found["reader"] == "direct"
    assert len(engine.bodies) == ITEMS


async def test_a_published_baseline_is_asked_with_its_own_prompt_lengths_and_thinking(tmp_path: Path) -> None:
    write_profile(import_prompts("memagent-direct", write_memagent(tmp_path / "checkout")), tmp_path / "profile")
    setup = replace(DIRECT, profile_files=profile_files(str(tmp_path / "profile")))
    async with HarbourEngine().running() as engine:
        await evaluated(evaluation(tmp_path / "own", [engine.url], setup=setup))
        body = engine.bodies[0]
        thinking = replace(setup, thinking=True, reply_tokens=77)
        await evaluated(evaluation(tmp_path / "other", [engine.url], setup=thinking))
    assert prompt_of(body).startswith("Read this and reply.\n\n<text>\nDocument 1:")
    assert re.search(r"\n</text>\n\nWhat is the code of \w+\?\n\n" + re.escape(FORM) + r"\Z", prompt_of(body))
    assert (body["max_tokens"], body["temperature"], body["top_p"]) == (10_000, 0.7, 0.95)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    other = engine.bodies[-1]
    assert (other["max_tokens"], other["chat_template_kwargs"]) == (77, {"enable_thinking": True})


async def test_a_document_beyond_the_window_loses_its_middle(tmp_path: Path) -> None:
    async with HarbourEngine().running() as whole:
        await evaluated(evaluation(tmp_path / "whole", [whole.url], setup=DIRECT))
    longest = max(_tokens(body) for body in whole.bodies)
    reply = profile_from_files(DIRECT.profile_files).prompt("answer", problem="", memory="").sampling.max_tokens or 0
    window = longest + reply
    async with HarbourEngine().running() as engine:
        await evaluated(evaluation(tmp_path / "cut", [engine.url], setup=replace(DIRECT, window_tokens=window)))
    assert len(engine.bodies) == ITEMS
    assert max(_tokens(body) for body in engine.bodies) < longest


def _tokens(body: Json) -> int:
    return EstimatingSplitter().count(prompt_of(body))


async def test_a_window_without_room_for_a_document_fails_the_item_and_asks_nothing(tmp_path: Path) -> None:
    async with HarbourEngine().running() as engine:
        asked = evaluation(tmp_path, [engine.url], setup=replace(DIRECT, window_tokens=10))
        found = await evaluated(asked)
    assert (found["failed"], len(engine.bodies)) == (ITEMS, 0)
    assert "leaves 0 tokens for the document" in str(records_of(asked)[0].error)


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=2000), st.integers(64, 400))
def test_what_is_left_fits_and_is_the_beginning_and_the_end(text: str, tokens: int) -> None:
    splitter = EstimatingSplitter()
    left = without_middle(text, tokens, splitter)
    assert splitter.count(left) <= tokens + 1
    assert left == text or (text.startswith(left[: len(left) // 4]) and text.endswith(left[-1:]))


def test_a_text_that_fits_is_whole() -> None:
    assert without_middle("short", 64, EstimatingSplitter()) == "short"


def test_no_room_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="leaves 3 tokens"):
        without_middle("text", 3, EstimatingSplitter())
