"""MemAgent: reads a document of any length through a window of fixed size. Source: arXiv 2507.02259.

The memory is a text of bounded length. Each chunk is read once, in order, together with the question and the memory,
and the reply overwrites the memory; the answer is given from the memory alone. n chunks cost n + 1 calls.
"""

from dataclasses import dataclass

from memloop.loops.parsing import listen, parse_answer, parse_memory
from memloop.loops.results import PassResult, ReadResult, Reply, Slips
from memloop.loops.steps import Answered, ChunkRead, ReadStep
from memloop.ports import ChatModel, Chunks, Prompt, Report, discard
from memloop.profiles import Profile
from memloop.wire.errors import InvalidRequest
from memloop.wire.memory import Usage


async def read_document(
    question: str,
    chunks: Chunks,
    *,
    model: ChatModel,
    profile: Profile,
    report: Report[ReadStep] = discard,
) -> ReadResult:
    """Read all chunks once and answer. Raises InvalidRequest on no chunks, and what the model raises."""
    read = await read_pass(question, chunks, model=model, profile=profile, report=report)
    reply = await answer(question, read.memory, model=model, profile=profile)
    await report(Answered(reply.answer, reply.boxed, reply.usage))
    return ReadResult(
        answer=reply.answer,
        boxed=reply.boxed,
        raw_answer=reply.raw,
        memory=read.memory,
        usage=read.usage + reply.usage,
        slips=read.slips + reply.slips,
    )


async def read_pass(
    question: str,
    chunks: Chunks,
    *,
    model: ChatModel,
    profile: Profile,
    report: Report[ReadStep] = discard,
    pass_number: int = 1,
) -> PassResult:
    """One pass over all chunks, from an empty memory to the memory that the last chunk left.

    Raises InvalidRequest when there is nothing to read.
    """
    if not len(chunks):
        raise InvalidRequest("the document is empty: there is nothing to read", param="document", code="empty_document")
    memory, usage, slips = profile.empty_memory, Usage(), Slips()
    for position in range(len(chunks)):
        chunk = await chunks.chunk(position)
        prompt = profile.prompt("read", problem=question, memory=memory, section=chunk.text)
        revision = await revise(memory, prompt, model=model)
        memory, usage, slips = revision.memory, usage + revision.usage, slips + revision.slips
        await report(
            ChunkRead(
                pass_number=pass_number,
                chunk=position,
                chunks_total=len(chunks),
                question=question,
                memory=memory,
                kept=revision.kept,
                truncated=revision.truncated,
                usage=revision.usage,
            )
        )
    return PassResult(memory, usage, slips)


async def answer(question: str, memory: str, *, model: ChatModel, profile: Profile) -> Reply:
    """The answer to the question from the memory alone."""
    completion = await model.complete(profile.prompt("answer", problem=question, memory=memory))
    found = parse_answer(completion)
    slips = Slips(truncated=int(completion.finish_reason == "length"))
    return Reply(found.text, found.boxed, listen(completion).text, completion.usage, slips)


@dataclass(frozen=True, slots=True)
class Revision:
    """The memory after a prompt that rewrites it; ``kept`` and ``truncated`` as in ``ChunkRead``."""

    memory: str
    kept: bool
    truncated: bool
    usage: Usage

    @property
    def slips(self) -> Slips:
        """The same, as counts."""
        return Slips(kept=int(self.kept), truncated=int(self.truncated))


async def revise(memory: str, prompt: Prompt, *, model: ChatModel) -> Revision:
    """Let the model rewrite the memory; when it says nothing, the memory stays: none is ever lost to silence."""
    completion = await model.complete(prompt)
    rewritten = parse_memory(completion)
    return Revision(
        memory=rewritten or memory,
        kept=not rewritten,
        truncated=completion.finish_reason == "length",
        usage=completion.usage,
    )
