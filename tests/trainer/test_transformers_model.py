"""The three loops on the shipped tiny model by transformers, with no server."""

import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import torch

from memloop.loops.memagent import read_document
from memloop.loops.memreread import reread_document
from memloop.loops.results import ReadResult
from memloop.ports import Prompt, Sampling
from memloop.profiles import load_profile
from memloop.wire.chat import ChatMessage
from memloop.wire.errors import DependencyError
from trainer.tiny.documents import random_document
from trainer.tiny.evaluate import memory_trials
from trainer.transformers_model import TransformersModel

TINY = Path("services/inference/models/memloop-tiny")
PROFILE = load_profile("tiny")


@pytest.fixture(scope="module")
def model() -> Iterator[TransformersModel]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a model so small only waits for more of them
    with TransformersModel.load(TINY) as loaded:
        yield loaded
    torch.set_num_threads(threads)


def asking(text: str, *, max_tokens: int, temperature: float = 0.0) -> Prompt:
    return Prompt((ChatMessage(role="user", content=text),), Sampling(max_tokens=max_tokens, temperature=temperature))


@pytest.mark.parametrize("loop", [read_document, reread_document])
async def test_a_document_is_read(model: TransformersModel, loop: Callable[..., Awaitable[ReadResult]]) -> None:
    document = random_document(random.Random(1), chunks=2, chunk_tokens=200, hops=1, distractors_per_chunk=0)
    result = await loop(document.question, document.chunks, model=model, profile=PROFILE)
    assert result.answer == document.answer
    assert result.usage.llm_calls >= 3
    assert result.usage.output_tokens > 0


async def test_the_writer_decides_through_thinking_and_a_tool_call(model: TransformersModel) -> None:
    trials = memory_trials(model, PROFILE, random.Random(2), count=4)
    outcomes = [await trial() for group in trials.values() for trial in group]
    assert outcomes == [True] * 4


async def test_greedy_is_repeatable_and_a_limit_ends_the_reply(model: TransformersModel) -> None:
    prompt = asking("My locker code is 482.", max_tokens=3)
    first, second = await model.complete(prompt), await model.complete(prompt)
    assert first == second
    assert (first.finish_reason, first.usage.output_tokens) == ("length", 3)


async def test_sampled_replies_differ(model: TransformersModel) -> None:
    prompt = asking("Hello.", max_tokens=24, temperature=5.0)
    assert len({(await model.complete(prompt)).content for _ in range(4)}) > 1


async def test_what_transformers_refuses_is_an_error_of_the_dependency(model: TransformersModel) -> None:
    with pytest.raises(DependencyError, match="could not generate"):
        await model.complete(asking("Hi.", max_tokens=0))
