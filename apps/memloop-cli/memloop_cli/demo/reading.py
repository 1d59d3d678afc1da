"""The demo's second part: questions about facts at known places of a long text."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from memloop.scoring.lenient import exact_match
from memloop.wire.long_read import Document, LongRead, LongReadRequest, ReadEvent, Strategy
from memloop_cli.demo.questions import DemoQuestion, DemoReading
from memloop_cli.reading.showing import read_to_end
from memloop_clients.gateway import GatewayClient

_ONE = "One fact each"
_TWO = "Two facts each, the second before the first"
_FEW = (1, 1)
"""How many questions of one fact, and of two, the short demo asks."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One question and its read."""

    asked: DemoQuestion
    read: LongRead
    seconds: float

    @property
    def right(self) -> bool:
        """Return whether the answer is the gold answer."""
        return exact_match(self.read.output_text, [self.asked.answer]) == 1.0


@dataclass(frozen=True, slots=True)
class ReadShown:
    """The outcomes of all questions, by strategy. Without ``full``, memreread is asked for two facts alone."""

    one_hop: dict[Strategy, tuple[Answered, ...]]
    two_hop: dict[Strategy, tuple[Answered, ...]]

    @property
    def faults(self) -> tuple[str, ...]:
        """Return the claims that did not hold."""
        one = self.one_hop["memagent"]
        plain, again, least = _right(one), _right(self.one_hop.get("memreread", one)), len(one) * 8 // 10 or 1
        claims = (
            (plain >= least, f"memagent answered {plain} questions, fewer than {least}"),
            (again >= plain, f"memreread answered {again} one-hop questions, memagent {plain}"),
            (self.found_by_rereading, "no two-hop question was answered by memreread and missed by memagent"),
        )
        return tuple(fault for held, fault in claims if not held)

    @property
    def found_by_rereading(self) -> bool:
        """Return whether memreread answered a two-hop question that no plain pass did, and never the reverse."""
        pairs = list(zip(self.two_hop["memagent"], self.two_hop["memreread"], strict=True))
        gained = any(again.right and not plain.right for plain, again in pairs)
        lost = any(plain.right and not again.right for plain, again in pairs)
        return gained and not lost


async def show_reading(
    client: GatewayClient, console: Console, reading: DemoReading, text: str, *, model: str, full: bool = False
) -> ReadShown:
    """Ask the questions; print progress and results. ``full``: all of them with both strategies, else a few."""
    console.rule("(b) A long read", align="left")
    console.print(f"{reading.source}: {reading.tokens:,} tokens, {len(text):,} characters")
    asked = reading if full else reading.some(*_FEW)
    asker = _Asker(client, console, Document(text=text), model)
    one, two = asked.with_hops(1), asked.with_hops(2)
    groups = [_Group(one, "memagent", _ONE), _Group(two, "memagent", _TWO), _Group(two, "memreread", _TWO)]
    groups += [_Group(one, "memreread", _ONE)] * full
    plain, two_plain, two_again, *again = await asker.ask(groups)
    one_hop: dict[Strategy, tuple[Answered, ...]] = {"memagent": plain}
    if again:
        one_hop["memreread"] = again[0]
    return ReadShown(one_hop, {"memagent": two_plain, "memreread": two_again})


@dataclass(frozen=True, slots=True)
class _Group:
    """Questions that are asked with one strategy, and the title of their table."""

    questions: Sequence[DemoQuestion]
    strategy: Strategy
    title: str


@dataclass(frozen=True, slots=True)
class _Asker:
    client: GatewayClient
    console: Console
    document: Document
    model: str

    async def ask(self, groups: Sequence[_Group]) -> list[tuple[Answered, ...]]:
        """All at once: one read alone waits for every token, many reads share the engine's steps."""
        began = time.monotonic()
        with _bars(self.console) as progress:
            found = await asyncio.gather(*(self._group(group, progress) for group in groups))
        for group, answers in zip(groups, found, strict=True):
            right = f"{_right(answers)} of {len(answers)} right"
            self.console.print(_table(answers, f"{group.title}, {group.strategy}: {right}"))
        usages = [answered.read.usage for answers in found for answered in answers]
        tokens, calls = sum(usage.total_tokens for usage in usages), sum(usage.llm_calls for usage in usages)
        seconds = time.monotonic() - began
        self.console.print(f"{tokens:,} tokens in {calls:,} calls, {seconds:.0f} s for all together\n", style="dim")
        return list(found)

    async def _group(self, group: _Group, progress: Progress) -> tuple[Answered, ...]:
        bars = [_Bar(progress, question.question) for question in group.questions]
        pairs = zip(group.questions, bars, strict=True)
        return tuple(await asyncio.gather(*(self._one(question, group.strategy, bar) for question, bar in pairs)))

    async def _one(self, question: DemoQuestion, strategy: Strategy, bar: "_Bar") -> Answered:
        began = time.monotonic()
        request = LongReadRequest(
            model=self.model, question=question.question, document=self.document, strategy=strategy
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


def _table(found: Sequence[Answered], title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("question", "gold", "answer", "", "rereads", "tokens", "calls", "s"):
        table.add_column(column, justify="right" if column in {"rereads", "tokens", "calls", "s"} else "left")
    for one in found:
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


def _right(found: Sequence[Answered]) -> int:
    return sum(one.right for one in found)
