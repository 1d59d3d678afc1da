"""The engine's workloads: whole reads of documents, many questions over one section, and the same calls at once."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memloop.loops.memagent import read_document
from memloop.ports import ChatModel, Chunk, Completion, HeldChunks, Prompt, Sampling
from memloop.profiles import Profile, load_profile
from trainer.tiny.prose import book
from trainer.tiny.reading_tasks import CHARS_PER_TOKEN

CHUNKS = 6
QUESTIONS = 24
SECTION_TOKENS = 1200
MOST_AT_ONCE = 64


@dataclass
class Recorder:
    """A ChatModel that records prompts and replies; concurrent calls may finish in any order."""

    model: ChatModel
    asked: list[Prompt] = field(default_factory=list[Prompt])
    texts: list[str] = field(default_factory=list[str])
    input_tokens: int = 0
    output_tokens: int = 0

    async def complete(self, prompt: Prompt) -> Completion:
        self.asked.append(prompt)
        completion = await self.model.complete(prompt)
        self.texts.append(completion.content)
        self.input_tokens += completion.usage.input_tokens
        self.output_tokens += completion.usage.output_tokens
        return completion


@dataclass(frozen=True, slots=True)
class Row:
    """One workload on one engine. ``texts`` are the replies in the order of their prompts."""

    variant: str
    workload: str
    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float
    texts: tuple[str, ...]

    @property
    def calls_per_s(self) -> float:
        return self.calls / self.seconds

    @property
    def tokens_per_s(self) -> float:
        """Return reply tokens per second."""
        return self.output_tokens / self.seconds


async def reads(model: ChatModel, variant: str, *, documents: int, first_seed: int) -> tuple[Row, list[Prompt]]:
    """Read documents concurrently, each chunk by chunk; return the row and the prompts used."""
    profile = load_profile("tiny")
    recorder, began = Recorder(model), time.perf_counter()
    works = (_read(recorder, profile, seed) for seed in range(first_seed, first_seed + documents))
    texts = await asyncio.gather(*works)
    return _row(variant, f"{documents} documents", recorder, began, texts), recorder.asked


async def questions(model: ChatModel, variant: str, *, section_first: bool) -> Row:
    """Ask many questions over one section, one after the other, with the section before or after them."""
    spec = load_profile("section-first" if section_first else "default").prompts["read"]
    section = book("held_out").slice(random.Random(f"section {section_first}"), int(SECTION_TOKENS * CHARS_PER_TOKEN))
    template = replace(load_profile("tiny"), prompts={"read": replace(spec, sampling=Sampling(max_tokens=8))})
    recorder, began = Recorder(model), time.perf_counter()
    for number in range(QUESTIONS):
        question = f"What does person {number} keep in box {number * 7}?"
        await recorder.complete(template.prompt("read", problem=question, memory="", section=section))
    where = "section first" if section_first else "section last"
    return _row(variant, f"{QUESTIONS} questions, {where}", recorder, began, recorder.texts)


async def all_at_once(model: ChatModel, variant: str, prompts: Sequence[Prompt]) -> Row:
    """Measure the engine's maximum on these shapes: the same calls, all at once."""
    recorder, began = Recorder(model), time.perf_counter()
    gate = asyncio.Semaphore(MOST_AT_ONCE)

    async def one(prompt: Prompt) -> str:
        async with gate:
            return (await recorder.complete(prompt)).content

    texts = await asyncio.gather(*map(one, prompts))
    return _row(variant, f"the same {len(prompts)} calls at once", recorder, began, texts)


async def _read(model: ChatModel, profile: Profile, seed: int) -> str:
    rng = random.Random(f"inference {seed}")
    chars = int(profile.budget.chunk_tokens * CHARS_PER_TOKEN * 0.8)
    texts = [book("held_out").slice(rng, chars) for _ in range(CHUNKS)]
    starts = [sum(map(len, texts[:number])) for number in range(CHUNKS)]
    chunks = HeldChunks(
        Chunk(number, start, start + len(text), text, profile.budget.chunk_tokens)
        for number, (start, text) in enumerate(zip(starts, texts, strict=True))
    )
    result = await read_document(f"Where is the key of house {seed}?", chunks, model=model, profile=profile)
    return f"{result.memory}\n{result.answer}"


def _row(variant: str, workload: str, recorder: Recorder, began: float, texts: Sequence[str]) -> Row:
    return Row(
        variant=variant,
        workload=workload,
        calls=len(recorder.asked),
        input_tokens=recorder.input_tokens,
        output_tokens=recorder.output_tokens,
        seconds=time.perf_counter() - began,
        texts=tuple(texts),
    )
