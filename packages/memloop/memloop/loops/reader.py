"""The model, prompts and options of a read, and its smallest part: one prompt that rewrites the memory."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from memloop.loops.parsing.reading import parse_answer, parse_memory, parse_query
from memloop.loops.rendering import as_written, listen
from memloop.loops.results import Reply
from memloop.loops.side_by_side import Branch, branches
from memloop.loops.steps import ReadStep, Verdict
from memloop.ports import ChatModel, Prompt, Report, discard
from memloop.profiles import Markup, Profile, neutralise
from memloop.wire.long_read import ReadDegradations, SubQuestion
from memloop.wire.memory import Usage
from memloop.wire.reading import ReadingOptions

_Result = TypeVar("_Result")
PLAIN = ReadingOptions()
"""The loops without any improvement."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A model with its prompts, where its steps go, and how it is to read."""

    model: ChatModel
    profile: Profile
    report: Report[ReadStep] = discard
    options: ReadingOptions = PLAIN

    def branch(self, name: str, report: Report[ReadStep] | None = None) -> "Reader":
        """Return the reader of one branch of calls that go side by side."""
        return replace(self, model=Branch(self.model, name), report=report or self.report)

    def for_question(self, number: int, report: Report[ReadStep] | None = None) -> "Reader":
        """Return the reader whose steps belong to one of several questions."""
        forward = report or self.report

        async def numbered(step: ReadStep) -> None:
            await forward(replace(step, asked=number))

        return self.branch(f"q{number}", numbered)


async def for_each_question(
    count: int, work: Callable[[int, Reader], Awaitable[_Result]], *, reader: Reader
) -> list[_Result]:
    """Do the work for each question by its number, side by side, with a reader of its own where there are several."""
    if count == 1:
        return [await work(0, reader)]

    async def one(number: int, report: Report[ReadStep]) -> _Result:
        return await work(number, reader.for_question(number, report))

    return await branches([partial(one, number) for number in range(count)], report=reader.report)


@dataclass(frozen=True, slots=True)
class Revision:
    """The memory after a prompt that rewrites it; ``kept`` and ``truncated`` as in ``ChunkRead``."""

    memory: str
    kept: bool
    truncated: bool
    usage: Usage

    @property
    def degradations(self) -> ReadDegradations:
        """The same, as counts."""
        return ReadDegradations(kept=int(self.kept), truncated=int(self.truncated))


async def revise(memory: str, prompt: Prompt, *, reader: Reader) -> Revision:
    """Lets the model rewrite the memory. An empty reply keeps the old one, so silence never loses a memory."""
    completion = await reader.model.complete(prompt)
    rewritten = parse_memory(completion, whole=reader.options.parity)
    return Revision(
        memory=rewritten or memory,
        kept=not rewritten,
        truncated=completion.finish_reason == "length",
        usage=completion.usage,
    )


async def answer(question: str, memory: str, *, model: ChatModel, profile: Profile, whole: bool = False) -> Reply:
    """Answer the question from the memory alone. ``whole`` keeps white space around the reply, as published."""
    completion = await model.complete(profile.prompt("answer", problem=question, memory=memory))
    found = parse_answer(completion, profile.prompts["answer"].parser)
    degradations = ReadDegradations(truncated=int(completion.finish_reason == "length"))
    raw = as_written(completion) if whole else listen(completion).text
    return Reply(found.text, found.boxed, raw, completion.usage, degradations)


async def judge(
    question: str, memory: str, history: Sequence[SubQuestion], *, reader: Reader
) -> tuple[Verdict, str | None, Usage]:
    """Return the judge's verdict on the memory, its sub-question if it asks one, and the cost."""
    prompt = reader.profile.prompt(
        "judge",
        question=question,
        memory=memory,
        query_history=history_lines(history, nothing=reader.profile.no_history),
    )
    completion = await reader.model.complete(prompt)
    verdict, query = parse_query(completion, whole=reader.options.parity)
    return verdict, query, completion.usage


def history_lines(history: Sequence[SubQuestion], *, nothing: str) -> Markup:
    """``<query>q</query> <result>a</result>`` for each sub-question, their texts made harmless."""
    lines = (
        f"<query>{neutralise(past.question)}</query> <result>{neutralise(past.answer)}</result>" for past in history
    )
    return Markup("\n".join(lines) or nothing)
