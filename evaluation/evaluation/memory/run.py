"""Runs one evaluation: does the missing work and writes each record to disk before it continues."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Hashable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TypeAlias

from evaluation.memory.endpoint import Address, Endpoint
from evaluation.memory.gateway_memory import GatewayMemory, words_of
from evaluation.memory.judging import Asked, Examiner, summary_of
from evaluation.memory.memos import UPDATE_TOP_K, Memos
from evaluation.memory.records import IN_MEMORY, Answered, AnyEntry, Checked, Graded, Ingested, Row, key_of
from evaluation.memory.retrieval import haystack
from memloop.ports import Recalled
from memloop.wire.errors import MemloopError
from memory_store.embedding.port import Embedder
from trainer.data.bounded_map import first_error
from trainer.data.dialogues.dialogue import Conversation, Point, Question, Session
from trainer.data.dialogues.formats import Format
from trainer.data.journal import Journal
from trainer.data.retry_policy import RetryPolicy

Kept: TypeAlias = Journal[AnyEntry]


@dataclass(frozen=True, slots=True)
class Judged:
    """Settings of the judged run. ``at_once`` bounds concurrent conversations, and concurrent questions and points.

    ``memos`` is its protocol, None for ours.
    """

    format: Format
    rows: tuple[Row, ...]
    model: Address
    judge: Address
    seeds: tuple[int, ...] = (0,)
    at_once: int = 8
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    memos: Memos | None = None
    exactly: bool = False
    """No judge: an answer is correct that equals the reference."""
    in_chats: bool = False
    """Each question is a chat at the gateway, with the memory of its row."""


async def recall_all(talks: Iterator[Conversation], embedder: Embedder, *, dimension: int, kept: Kept) -> None:
    """Measure the recall of every question that names its evidence, conversation by conversation."""
    for talk in talks:
        missing = [
            question
            for question in talk.questions
            if question.evidence and kept.get(("recall", talk.id, question.id)) is None
        ]
        if missing:
            async with haystack(talk, embedder, dimension=dimension) as store:
                for question in missing:
                    kept.append(await store.recalled(question))


async def judge_all(
    talks: Callable[[], Iterator[Conversation]], judged: Judged, memory: GatewayMemory | None, kept: Kept
) -> None:
    """Judge every row of every conversation. Raises MemloopError on lasting gateway failures: run again to resume."""
    work: Iterator[tuple[Conversation, Row]] = ((talk, row) for talk in talks() for row in judged.rows)
    async with _examiner(judged) as examiner:
        evaluation = _Evaluation(judged, examiner, memory, kept)
        with first_error():
            async with asyncio.TaskGroup() as hands:
                for _ in range(judged.at_once):
                    hands.create_task(evaluation.work_through(work))


@asynccontextmanager
async def _examiner(judged: Judged) -> AsyncGenerator[Examiner]:
    model = Endpoint(judged.model, retries=judged.retries)
    judge = Endpoint(judged.judge, retries=judged.retries)
    try:
        yield Examiner(model, judge, judged.format, memos=judged.memos, exactly=judged.exactly)
    finally:
        await model.close()
        await judge.close()


class _Evaluation:
    def __init__(self, judged: Judged, examiner: Examiner, memory: GatewayMemory | None, kept: Kept) -> None:
        self._judged = judged
        self._examiner = examiner
        self._memory = memory
        self._kept = kept
        self._room = asyncio.Semaphore(judged.at_once)

    async def work_through(self, work: Iterator[tuple[Conversation, Row]]) -> None:
        """Process conversation and row pairs one by one, taken from the shared iterator."""
        for talk, row in work:
            for over, session in enumerate(talk.sessions, 1):
                is_last = over == len(talk.sessions)
                await self._session(row, talk, session, is_last=is_last)
                await self._all(
                    self._answer(Asked(row, talk, question, seed))
                    for question, seed in product(talk.asked_after(over), self._judged.seeds)
                    if self._is_open(("answer", row, talk.id, question.id, seed), is_last=is_last)
                )

    async def _session(self, row: Row, talk: Conversation, session: Session, *, is_last: bool) -> None:
        """Write a session to the memory and grade the extraction."""
        if row not in IN_MEMORY:
            return
        ingested = self._kept.get(("ingest", row, talk.id, session.id))
        if not isinstance(ingested, Ingested):
            ingested = await self._gateway.ingest(row, talk, session)
            self._kept.append(ingested)
        if row == "ours" and session.points:
            await self._all(self._points(talk, ingested, session, is_last=is_last))
            await self._all(self._memories(talk, ingested, session, is_last=is_last))

    def _points(
        self, talk: Conversation, ingested: Ingested, session: Session, *, is_last: bool
    ) -> Iterator[Coroutine[None, None, None]]:
        for point in session.points:
            record = Graded(
                ingested.row,
                talk.id,
                session.id,
                point.id,
                point.importance,
                is_update=point.is_update,
                type=point.type,
                interferes=point.interferes,
            )
            if self._is_open(key_of(record), is_last=is_last):
                yield self._grade(record, talk, point, ingested.memories)

    def _memories(
        self, talk: Conversation, ingested: Ingested, session: Session, *, is_last: bool
    ) -> Iterator[Coroutine[None, None, None]]:
        for place, memory in enumerate(ingested.memories):
            record = Checked(ingested.row, talk.id, session.id, place)
            if self._is_open(key_of(record), is_last=is_last):
                yield self._check(record, session, memory)

    def _is_open(self, key: Hashable, *, is_last: bool) -> bool:
        """Return whether a record is missing. Failures are retried, unless the memory has moved on since."""
        entry = self._kept.get(key)
        failed = isinstance(entry, Answered | Graded | Checked) and entry.error is not None
        return entry is None or (failed and is_last)

    async def _answer(self, asked: Asked) -> None:
        if self._judged.in_chats:
            shown = _everything(asked.talk, asked.question) if asked.row == "full" else ()
            self._kept.append(await self._examiner.judge(asked, self._gateway.chat(asked, shown)))
            return
        texts = self._judged.memos.texts if self._judged.memos else None
        began = time.perf_counter()
        try:
            if texts is None:
                answering = partial(self._examiner.answer, asked, await self._notes(asked))
            else:
                views = await self._gateway.search_views(asked.row, asked.talk, asked.question.text)
                answering = partial(self._examiner.answer_by, texts, asked, views)
        except MemloopError as error:
            self._kept.append(replace(asked.answered(), error=summary_of(error)))
            return
        self._kept.append(await answering(search_s=time.perf_counter() - began))

    async def _notes(self, asked: Asked) -> Sequence[Recalled]:
        """Return the notes that the row shows the model."""
        match asked.row:
            case "off":
                return ()
            case "full":
                return _everything(asked.talk, asked.question)
            case "ours" | "raw":
                return await self._gateway.search(asked.row, asked.talk, asked.question.text)

    async def _grade(self, record: Graded, talk: Conversation, point: Point, memories: Sequence[str]) -> None:
        """Grade a point; an update of which the memory holds something is graded by that alone, as HaluMem does it.

        To its own code a point that replaces nothing is no update.
        """
        seed, memos = self._judged.seeds[0], self._judged.memos
        is_update = point.is_update and (memos is None or bool(point.replaces))
        top_k = None if memos is None else UPDATE_TOP_K
        try:
            found = await self._gateway.search(record.row, talk, point.text, top_k=top_k) if is_update else ()
        except MemloopError as error:
            self._kept.append(replace(record, error=summary_of(error), as_update=True))
            return
        if found:
            record = await self._examiner.update(replace(record, as_update=True), point, found, seed=seed)
        else:
            record = await self._examiner.extraction(record, point, memories, seed=seed)
        self._kept.append(record)

    async def _check(self, record: Checked, session: Session, memory: str) -> None:
        self._kept.append(await self._examiner.accuracy(record, session, memory, seed=self._judged.seeds[0]))

    async def _all(self, work: Iterable[Coroutine[None, None, None]]) -> None:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(self._in_turn(each))

    async def _in_turn(self, work: Coroutine[None, None, None]) -> None:
        async with self._room:
            await work

    @property
    def _gateway(self) -> GatewayMemory:
        if self._memory is None:
            raise ValueError("the rows ours and raw need a gateway")
        return self._memory


def _everything(talk: Conversation, question: Question) -> tuple[Recalled, ...]:
    """Return all turns of the sessions so far."""
    over = talk.sessions[: question.after_sessions]
    return tuple(Recalled(turn.id, words_of(turn), turn.said_at) for session in over for turn in session.turns)
