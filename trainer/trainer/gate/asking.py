"""Collects a served model's answers to held-out rows; each is on disk before its slot asks the next row."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pydantic import TypeAdapter

from memloop.wire.errors import MemloopError
from memloop.wire.long_read import Strategy
from trainer.data.bounded_map import bounded_map
from trainer.data.journal import Journal
from trainer.gate.gateway import Gateway
from trainer.gate.held_out import HeldOut, Task
from trainer.rollout.tasks import DecideTask, ReadTask

_ROWS_OWN_FAULT: Final = frozenset({400, 413, 422})
_FORGET_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a row: a read's answer, or a decision's action and then its memories. None with an error."""

    row: int
    said: tuple[str, ...] = ()
    error: str | None = None
    seconds: float = 0.0


_ANSWER: Final = TypeAdapter(Answer)


class RowFailed(Exception):
    """The model gave no usable result for a row; the message holds the reason."""


class Answers(Journal[Answer]):
    """The answers of one model to one file. Raises as ``Journal`` does."""

    def __init__(self, path: Path, held_out: HeldOut, **of: str) -> None:
        """Open the file. ``of`` identifies the model, by its name or otherwise."""
        run: dict[str, object] = {"gate": 1, "held_out": held_out.sha256, "loop": held_out.loop, **of}
        super().__init__(path, run, records=_ANSWER, key_of=lambda answer: answer.row)

    def missing(self, held_out: HeldOut) -> int:
        """Count the rows without an answer."""
        return held_out.count - len(self.records)


async def ask_all(
    held_out: HeldOut, answers: Answers, gateway: Gateway, *, model: str, places: int, done: Callable[[], None]
) -> None:
    """Ask the rows without an answer. Raises MemloopError when the gateway is unavailable or refuses the requests.

    A row that cannot be answered (a failed read, a write without a usable decision) gets an error as its answer. A 5xx
    is the gateway's fault, not an answer of the model: it raises. Each row is deleted from the gateway afterwards, also
    when the run is stopped.
    """
    run = secrets.token_hex(8)
    strategy: Strategy = "memreread" if held_out.loop == "memreread" else "memagent"

    async def settle(open_row: tuple[int, Task]) -> None:
        number, task = open_row
        name = f"gate-{run}-{number}"
        asked: _Asked = (
            _Read(gateway, task, model, strategy, name) if isinstance(task, ReadTask) else _Write(gateway, task, name)
        )
        try:
            answers.append(await _answered(number, asked))
        except BaseException:
            with suppress(MemloopError, TimeoutError):
                async with asyncio.timeout(_FORGET_S):
                    await asked.forget()
            raise
        await asked.forget()
        done()

    await bounded_map(places, _still_open(held_out, answers), settle)


def _still_open(held_out: HeldOut, answers: Answers) -> Iterator[tuple[int, Task]]:
    return ((number, task) for number, task in held_out.tasks() if answers.get(number) is None)


class _Asked(Protocol):
    """One row that a gateway is asked."""

    async def said(self) -> tuple[str, ...]:
        """Return the answer. Raises RowFailed, and MemloopError."""
        ...

    async def forget(self) -> None:
        """Delete everything about the row from the gateway. Raises MemloopError."""
        ...


async def _answered(number: int, asked: _Asked) -> Answer:
    began = time.perf_counter()
    said, error = (), None
    try:
        said = await asked.said()
    except RowFailed as failed:
        error = str(failed)
    except MemloopError as refused:
        if refused.http_status not in _ROWS_OWN_FAULT:
            raise
        error = str(refused)
    return Answer(number, said, error, round(time.perf_counter() - began, 3))


class _Read:
    """A document to read."""

    def __init__(self, gateway: Gateway, task: ReadTask, model: str, strategy: Strategy, name: str) -> None:
        self._gateway = gateway
        self._task = task
        self._model = model
        self._strategy: Strategy = strategy
        self._name = name
        self._id: str | None = None

    async def said(self) -> tuple[str, ...]:
        """See ``_Asked``."""
        self._id = await self._gateway.begin_read(
            self._task, model=self._model, strategy=self._strategy, name=self._name
        )
        read = await self._gateway.read_ended(self._id)
        if read.status != "completed":
            raise RowFailed(f"the read is {read.status}: {read.error.message if read.error else 'no reason given'}")
        return (read.output_text,)

    async def forget(self) -> None:
        """See ``_Asked``."""
        if self._id is not None:
            await self._gateway.forget_read(self._id)


class _Write:
    """Turns for the memory writer; the row's memories and the decision belong to a temporary user."""

    def __init__(self, gateway: Gateway, task: DecideTask, name: str) -> None:
        self._gateway = gateway
        self._task = task
        self._name = name

    async def said(self) -> tuple[str, ...]:
        """See ``_Asked``."""
        await self._gateway.remember(self._task.memories, user_id=self._name)
        event = await self._gateway.decided(self._task, user_id=self._name)
        if event.status != "completed" or not event.decisions:
            raise RowFailed(event.error or "the write ended without a decision")
        return event.decisions[-1].action, *(written.item.memory for written in event.memories)

    async def forget(self) -> None:
        """See ``_Asked``."""
        await self._gateway.forget_user(self._name)
