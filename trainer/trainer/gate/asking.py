"""What a served model says to each held-out row; every answer is on the disk before its place asks the next row."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import TypeAdapter

from memloop.wire.errors import EngineError
from memloop.wire.long_read import Strategy
from trainer.data.at_once import at_once
from trainer.data.journal import Journal
from trainer.gate.gateway import Gateway
from trainer.gate.held_out import HeldOut, Task
from trainer.rollout.tasks import DecideTask, ReadTask

_ROWS_OWN_FAULT: Final = frozenset({400, 413, 422, 500})
_Outcome: TypeAlias = tuple[tuple[str, ...], str | None, Callable[[], Awaitable[None]]]
"""What was said, what went wrong, and how the gateway is made to forget it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said to a row: a read's answer, or a decision's action and then what it stored. None with an error."""

    row: int
    said: tuple[str, ...] = ()
    error: str | None = None
    seconds: float = 0.0


_ANSWER: Final = TypeAdapter(Answer)


class Answers(Journal[Answer]):
    """The answers of one model to one file. Raises as ``Journal`` does."""

    def __init__(self, path: Path, held_out: HeldOut, **of: str) -> None:
        """``of`` says whose they are: the model's name, and what else tells it from others."""
        run: dict[str, object] = {"gate": 1, "held_out": held_out.sha256, "loop": held_out.loop, **of}
        super().__init__(path, run, records=_ANSWER, key_of=lambda answer: answer.row)
        self.digest = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:16]

    def missing(self, held_out: HeldOut) -> int:
        """How many rows have no answer yet."""
        return held_out.count - len(self.records)


async def ask_all(
    held_out: HeldOut, answers: Answers, gateway: Gateway, *, model: str, places: int, done: Callable[[], None]
) -> None:
    """Ask the rows that have no answer. Raises MemloopError when the gateway is not there, or refuses to be asked.

    A row that cannot be answered (its read failed, its write gave no usable decision) has an error for an answer.
    """
    asker = _Asker(held_out, answers.digest, gateway, model)

    async def settle(open_row: tuple[int, Task]) -> None:
        async with asker.row(*open_row) as answer:
            answers.append(answer)
        done()

    await at_once(places, _still_open(held_out, answers), settle)


def _still_open(held_out: HeldOut, answers: Answers) -> Iterator[tuple[int, Task]]:
    return ((number, task) for number, task in held_out.tasks() if answers.get(number) is None)


class _Asker:
    """Asks one row at a time; ``run`` is in every name that the gateway sees, so that runs never meet."""

    def __init__(self, held_out: HeldOut, run: str, gateway: Gateway, model: str) -> None:
        self._strategy: Strategy = "memreread" if held_out.loop == "memreread" else "memagent"
        self._run = run
        self._gateway = gateway
        self._model = model

    @asynccontextmanager
    async def row(self, number: int, task: Task) -> AsyncGenerator[Answer]:
        """The answer to a row; on leaving, the gateway forgets the row, its document and its memories."""
        began = time.perf_counter()
        name = f"gate-{self._run}-{number}"
        ask = self._read(task, name) if isinstance(task, ReadTask) else self._decide(task, name)
        said, error, forget = await ask
        yield Answer(number, said, error, round(time.perf_counter() - began, 3))
        await forget()

    async def _read(self, task: ReadTask, name: str) -> _Outcome:
        try:
            read = await self._gateway.read(task, model=self._model, strategy=self._strategy, name=name)
        except EngineError as error:
            return (), _own_fault(error), _nothing
        said = (read.output_text,) if read.status == "completed" else ()
        why = read.error.message if read.error else "no reason given"
        return said, None if said else f"the read is {read.status}: {why}", partial(self._gateway.forget_read, read)

    async def _decide(self, task: DecideTask, name: str) -> _Outcome:
        forget = partial(self._gateway.forget_user, name)
        try:
            event = await self._gateway.decide(task, user_id=name)
        except EngineError as error:
            return (), _own_fault(error), forget
        if event.status != "completed" or not event.decisions:
            return (), event.error or "the write ended without a decision", forget
        return (event.decisions[-1].action, *(written.item.memory for written in event.memories)), None, forget


async def _nothing() -> None:
    """There is nothing to forget."""


def _own_fault(error: EngineError) -> str:
    """What is wrong with the row. Raises the error when it is not the row's."""
    if error.engine_status not in _ROWS_OWN_FAULT:
        raise error
    return str(error)
