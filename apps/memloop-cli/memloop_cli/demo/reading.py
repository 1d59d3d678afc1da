"""The demo's second part: questions about a text, some of them about facts that were planted into it."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from memloop.scoring.lenient import contains
from memloop.wire.long_read import Document, LongRead, LongReadRequest, ReadEvent, Strategy
from memloop_cli.demo.questions import DemoQuestion, DemoReading
from memloop_cli.reading.showing import evidence_line, read_to_end
from memloop_clients.gateway import GatewayClient


@dataclass(frozen=True, slots=True)
class Answered:
    """One question and its read."""

    asked: DemoQuestion
    read: LongRead
    seconds: float

    @property
    def right(self) -> bool:
        """Return whether the answer holds the expected words."""
        return contains(self.read.output_text, [self.asked.answer]) == 1.0


@dataclass(frozen=True, slots=True)
class GroupShown:
    """The questions of one title, asked with one strategy."""

    title: str
    strategy: Strategy
    answers: tuple[Answered, ...]

    def __str__(self) -> str:
        right = sum(one.right for one in self.answers)
        return f"{self.title}, {self.strategy}: {right} of {len(self.answers)} right"


async def show_reading(
    client: GatewayClient, console: Console, reading: DemoReading, text: str, *, model: str, full: bool = False
) -> list[GroupShown]:
    """Ask the questions; print progress, answers and evidence. ``full``: all of them, else the few of ``short``."""
    console.rule("(b) A long read", align="left")
    console.print(f"{reading.source}: {len(text.split()):,} words")
    began = time.monotonic()
    asker = _Asker(client, Document(text=text), model)
    groups = reading.asked(full=full)
    with _bars(console) as progress:
        # All at once: one read alone waits for every token, many reads share the engine's steps.
        found = await asyncio.gather(*(asker.ask(held, strategy, progress) for _, strategy, held in groups))
    shown = [GroupShown(title, strategy, held) for (title, strategy, _), held in zip(groups, found, strict=True)]
    for group in shown:
        console.print(_table(group))
        _print_evidence(group, console)
    usages = [answered.read.usage for group in shown for answered in group.answers]
    tokens, calls = sum(usage.total_tokens for usage in usages), sum(usage.llm_calls for usage in usages)
    seconds = time.monotonic() - began
    console.print(f"{tokens:,} tokens in {calls:,} calls, {seconds:.0f} s for all together\n", style="dim")
    return shown


@dataclass(frozen=True, slots=True)
class _Asker:
    client: GatewayClient
    document: Document
    model: str

    async def ask(
        self, questions: Sequence[DemoQuestion], strategy: Strategy, progress: Progress
    ) -> tuple[Answered, ...]:
        bars = [_Bar(progress, asked.question) for asked in questions]
        pairs = zip(questions, bars, strict=True)
        return tuple(await asyncio.gather(*(self._one(question, strategy, bar) for question, bar in pairs)))

    async def _one(self, question: DemoQuestion, strategy: Strategy, bar: "_Bar") -> Answered:
        began = time.monotonic()
        request = LongReadRequest(
            model=self.model, question=question.question, document=self.document, strategy=strategy, evidence=True
        )
        read = await read_to_end(self.client, request, bar)
        return Answered(question, read, time.monotonic() - began)


class _Bar:
    """Shows one read's progress over the chunks of its current pass."""

    def __init__(self, progress: Progress, question: str) -> None:
        self._progress = progress
        self._question = question
        self._task: TaskID = progress.add_task(question, total=None)

    def see(self, event: ReadEvent) -> None:
        """Display one event."""
        done = event.progress or (event.read.progress if event.read else None)
        if done is not None:
            label = self._question if done.pass_ == 1 else f"{self._question} (reread {done.pass_ - 1})"
            self._progress.update(
                self._task, description=label, total=done.chunks_total or None, completed=done.chunks_done
            )


def _bars(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def _table(group: GroupShown) -> Table:
    table = Table(title=str(group), title_justify="left", title_style="bold")
    for column in ("question", "expected", "answer", "", "rereads", "tokens", "calls", "s"):
        table.add_column(column, justify="right" if column in {"rereads", "tokens", "calls", "s"} else "left")
    for one in group.answers:
        asked = "; ".join(f"{sub.question} {sub.answer or '-'}" for sub in one.read.subquestions)
        table.add_row(
            one.asked.question,
            one.asked.answer,
            one.read.output_text or "-",
            "[green]right[/]" if one.right else "[red]wrong[/]",
            asked or "-",
            f"{one.read.usage.total_tokens:,}",
            f"{one.read.usage.llm_calls:,}",
            f"{one.seconds:.0f}",
        )
    return table


def _print_evidence(group: GroupShown, console: Console) -> None:
    """Print the places in the text that say what each answer rests on."""
    for one in group.answers:
        for entry in one.read.evidence:
            if entry.text is not None:
                console.print(evidence_line(entry))
