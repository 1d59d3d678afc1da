"""Whether a long-read request fits the served model, and what it may cost."""

from typing import Any

import pytest

from gateway.long_read.plan import estimate, plan_read
from memloop.chunking import EstimatingSplitter
from memloop.profiles import load_profile
from memloop.wire.errors import Unprocessable
from memloop.wire.long_read import Document, LongReadRequest

PROFILE = load_profile("default")
SPLITTER = EstimatingSplitter()


def asked(**changes: Any) -> LongReadRequest:
    fields: dict[str, Any] = {"model": "m", "question": "Where?", "document": Document(text="word " * 100)}
    return LongReadRequest(**(fields | changes))


def planned(**changes: Any) -> Any:
    return plan_read(asked(**changes), profile=PROFILE, splitter=SPLITTER, max_chars=10_000)


def test_a_plain_request_reads_with_the_profiles_settings() -> None:
    plan = planned()
    assert plan.profile == PROFILE


def test_a_smaller_memory_shortens_the_replies_that_are_memories_only() -> None:
    plan = planned(memory_tokens=100)
    before, after = PROFILE.prompts, plan.profile.prompts
    assert after["read"].sampling.max_tokens == before["read"].sampling.max_tokens - 924
    assert after["integrate"].sampling.max_tokens == before["integrate"].sampling.max_tokens - 924
    assert after["answer"] == before["answer"]
    assert plan.budget.memory_tokens == 100


def test_a_chunk_size_of_the_profile_shrinks_to_fit_a_long_question() -> None:
    plan = planned(question="why " * 500)
    assert plan.budget.chunk_tokens < PROFILE.budget.chunk_tokens
    window = plan.budget.window_tokens
    reply = plan.profile.prompts["read"].sampling.max_tokens
    assert plan.question_tokens + plan.budget.chunk_tokens + plan.budget.memory_tokens + reply < window


def test_a_chunk_size_that_was_asked_for_is_kept_or_refused_never_changed() -> None:
    assert planned(chunk_tokens=5500).budget.chunk_tokens == 5500
    with pytest.raises(Unprocessable, match=r"leaves \d+ for a chunk") as refused:
        planned(chunk_tokens=7000)
    assert refused.value.param == "chunk_tokens"


def test_what_a_plan_fits_the_rendered_prompt_fits_too() -> None:
    question = "why " * 200
    plan = planned(question=question)
    chunk = "word " * (plan.budget.chunk_tokens * 2 // 5)
    memory = "fact " * (plan.budget.memory_tokens * 2 // 5)
    prompt = plan.profile.prompt("read", problem=question, memory=memory, section=chunk)
    used = sum(SPLITTER.count(message.text()) for message in prompt.messages) + prompt.sampling.max_tokens
    assert used <= plan.budget.window_tokens


@pytest.mark.parametrize(
    ("strategy", "rereads", "calls"),
    [("memagent", 2, 5), ("memreread", 0, 5), ("memreread", 2, 3 * 4 + 2 + 2 * 2 + 1)],
)
def test_an_estimate_is_the_formula_of_the_loop(strategy: str, rereads: int, calls: int) -> None:
    request = asked(strategy=strategy, max_rereads=rereads, chunk_tokens=80, document=Document(text="word " * 100))
    plan = planned(strategy=strategy, max_rereads=rereads, chunk_tokens=80)
    chunks = SPLITTER.split("word " * 100, chunk_tokens=80)
    cost = estimate(request, plan, chunks, SPLITTER)
    assert (cost.chunks, cost.max_llm_calls) == (4, calls)
    assert cost.document_tokens == sum(chunk.tokens for chunk in chunks)
    assert cost.max_output_tokens <= calls * 1024
