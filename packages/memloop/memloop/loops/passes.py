"""The reading pass, the unit of every loop: all chunks, once, in order, for one question or for several.

Source of the pass: MemAgent, arXiv 2507.02259. Questions that share a pass go through it chunk by chunk: their calls
for a chunk go out together, so that the engine serves them as one batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from memloop.loops.journal import BudgetSpent
from memloop.loops.notes import Notes
from memloop.loops.parsing.reading import parse_gate
from memloop.loops.reader import Reader, Revision, judge, revise
from memloop.loops.results import NO_DEGRADATIONS, PassResult
from memloop.loops.side_by_side import together
from memloop.loops.steps import ChunkRead
from memloop.ports import Chunk, Chunks, Prompt
from memloop.wire.errors import ContextTruncated
from memloop.wire.long_read import ReadDegradations
from memloop.wire.memory import Usage

_LEAST_PIECE_CHARS = 200


@dataclass(frozen=True, slots=True)
class _Turn:
    """One chunk for one question: the notes after it, and what the calls for its pieces were like."""

    notes: Notes
    revision: Revision
    skipped: bool = False
    enough: bool = False
    pieces: int = 1


@dataclass(frozen=True, slots=True)
class _Line:
    """One question on its way through the pass."""

    question: str
    reader: Reader
    notes: Notes
    usage: Usage = Usage()
    degradations: ReadDegradations = NO_DEGRADATIONS
    over: bool = False
    pieces: int = 1
    """In how many pieces the engine takes a chunk: more than one after it cut a prompt."""

    def after(self, turn: _Turn) -> "_Line":
        return replace(
            self,
            notes=turn.notes,
            usage=self.usage + turn.revision.usage,
            degradations=self.degradations + turn.revision.degradations,
            over=turn.enough,
            pieces=turn.pieces,
        )

    def result(self) -> PassResult:
        return PassResult(self.notes.text(self.reader.profile.empty_memory), self.usage, self.degradations)


async def read_in_order(
    questions: Sequence[str], chunks: Chunks, *, reader: Reader, pass_number: int, segment: int | None = None
) -> list[PassResult]:
    """Run one pass for all questions, each from an empty memory. Reports a ``ChunkRead`` per chunk and question."""
    heads = reader.options.mhm_lru.heads if reader.options.mhm_lru else 1
    share = max(1, reader.profile.budget.memory_tokens // heads)
    own = replace(reader, profile=reader.profile.with_memory_tokens(share)) if heads > 1 else reader
    blank = Notes.blank(reader.profile.empty_memory, heads)
    readers = [own] if len(questions) == 1 else [own.for_question(number) for number in range(len(questions))]
    lines = [_Line(question, each, blank) for question, each in zip(questions, readers, strict=True)]
    for position in range(len(chunks)):
        at_work = [number for number, line in enumerate(lines) if not line.over]
        if not at_work:
            break
        chunk = await chunks.chunk(position)
        outcomes = await together([partial(_take_in, lines[number], chunk) for number in at_work])
        spent: BudgetSpent | None = None
        for number, turn in zip(at_work, outcomes, strict=True):
            if isinstance(turn, BudgetSpent):
                spent = turn
                continue
            lines[number] = line = lines[number].after(turn)
            step = ChunkRead(
                pass_number=pass_number,
                chunk=chunk.index,
                tokens=chunk.tokens,
                done=position + 1,
                chunks_total=len(chunks),
                question=line.question,
                memory=line.notes.text(line.reader.profile.empty_memory),
                kept=turn.revision.kept,
                truncated=turn.revision.truncated,
                usage=turn.revision.usage,
                skipped=turn.skipped,
                enough=turn.enough,
                segment=segment,
            )
            await line.reader.report(step)
        if spent is not None:
            raise spent
    return [line.result() for line in lines]


async def _take_in(line: _Line, chunk: Chunk) -> _Turn:
    """Read one chunk for one question, in as many pieces as the engine needs to read all of it.

    Raises ContextTruncated when the engine cuts the prompt of a small piece, too.
    """
    pieces = line.pieces
    while True:
        try:
            return await _in_pieces(line, chunk, pieces)
        except ContextTruncated:
            pieces *= 2
            if len(chunk.text) < pieces * _LEAST_PIECE_CHARS:
                raise


async def _in_pieces(line: _Line, chunk: Chunk, pieces: int) -> _Turn:
    if pieces == 1:
        return await _read_piece(line, chunk)
    text, bounds = chunk.text, [0]
    for place in (number * len(chunk.text) // pieces for number in range(1, pieces)):
        word_end = text.find(" ", place, place + _LEAST_PIECE_CHARS // 2)
        bounds.append(place if word_end < 0 else word_end)
    turns: list[_Turn] = []
    for start, end in pairwise((*bounds, len(text))):
        turns.append(await _read_piece(line, replace(chunk, text=text[start:end])))
        line = line.after(turns[-1])
        if line.over:
            break
    revision = Revision(
        memory=turns[-1].revision.memory,
        kept=all(turn.revision.kept for turn in turns),
        truncated=any(turn.revision.truncated for turn in turns),
        usage=sum((turn.revision.usage for turn in turns), start=Usage()),
    )
    skipped = all(turn.skipped for turn in turns)
    return _Turn(turns[-1].notes, revision, skipped=skipped, enough=turns[-1].enough, pieces=pieces)


async def _read_piece(line: _Line, chunk: Chunk) -> _Turn:
    """Read one piece for one question, through the active gates."""
    gated = line.reader.options.gated
    if gated and gated.skip:
        completion = await line.reader.model.complete(_prompt(line, chunk, gate=True))
        reply, empty = parse_gate(completion), line.reader.profile.empty_memory
        # A memory that grew is one, whatever mark stands beside it; a shorter text explains why the old one stays
        explains = reply.keep and line.notes.text(empty) != empty and len(reply.memory) < len(line.notes.due)
        memory = "" if explains else reply.memory
        cut = completion.finish_reason == "length"
        silent = not memory and not reply.keep
        revision = Revision(memory or line.notes.due, kept=silent, truncated=cut, usage=completion.usage)
        notes = line.notes.rewritten(revision.memory)
        enough = gated.exit and reply.enough and notes.text(empty) != empty
        return _Turn(notes, revision, skipped=reply.keep and not memory, enough=enough)
    revision = await revise(line.notes.due, _prompt(line, chunk), reader=line.reader)
    turn = _Turn(line.notes.rewritten(revision.memory), revision)
    if gated and gated.exit and turn.notes != line.notes:
        memory = turn.notes.text(line.reader.profile.empty_memory)
        verdict, _, usage = await judge(line.question, memory, (), reader=line.reader)
        revision = replace(turn.revision, usage=turn.revision.usage + usage)
        return replace(turn, revision=revision, enough=verdict == "sufficient")
    return turn


def _prompt(line: _Line, chunk: Chunk, *, gate: bool = False) -> Prompt:
    name = "gate" if gate else "read"
    return line.reader.profile.prompt(name, problem=line.question, memory=line.notes.due, section=chunk.text)
