"""Shows a read: its progress, memory and rereads live, then its answers, evidence and cost."""

from contextlib import aclosing
from typing import Final, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from memloop.wire.long_read import Estimate, Evidence, LongRead, LongReadRequest, ReadEvent, ReadOutput
from memloop_cli.errors import CliError
from memloop_clients.gateway import GatewayClient

_MEMORY_CHARS = 1_200


class Watcher(Protocol):
    """Receives every event of a read."""

    def see(self, event: ReadEvent) -> None:
        """Show it."""
        ...


async def read_to_end(client: GatewayClient, request: LongReadRequest, watcher: Watcher) -> LongRead:
    """Return the finished read. Raises CliError when it failed, was cancelled or its stream ended early."""
    last: LongRead | None = None
    async with aclosing(client.stream_read(request)) as events:
        async for event in events:
            watcher.see(event)
            last = event.read or last
    return finished(last)


def finished(read: LongRead | None) -> LongRead:
    """Return the read if it has an answer. Raises CliError."""
    if read is None or read.status not in {"completed", "incomplete"}:
        why = "its stream ended too early" if read is None or read.status == "in_progress" else _reason(read)
        raise CliError(f"the read failed: {why}")
    return read


def _reason(read: LongRead) -> str:
    return read.error.message if read.error is not None else f"it was {read.status}"


class LiveRead:
    """Shows progress over the chunks of the current pass, the memory and the rereads, from the first event on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
        )
        self._pass: TaskID | None = None
        self._pass_number = 0
        self._memory = ""
        self._live = Live(self._shown(), console=console, refresh_per_second=8)

    def __enter__(self) -> "LiveRead":
        return self

    def __exit__(self, *_: object) -> None:
        if not self._live.is_started:
            return
        self._live.stop()
        if not self._console.is_terminal:
            self._console.print()

    def see(self, event: ReadEvent) -> None:
        """Display one event."""
        if not self._live.is_started:
            self._live.start()
        progress = event.progress or (event.read.progress if event.read else None)
        if progress is not None:
            self._show_pass(progress.pass_, event.question)
            if self._pass is not None:
                self._progress.update(self._pass, total=progress.chunks_total, completed=progress.chunks_done)
        self._memory = event.memory if event.memory is not None else self._memory
        self._live.update(self._shown())

    def _show_pass(self, number: int, question: str | None) -> None:
        if number == self._pass_number:
            return
        self._pass_number = number
        label = "reading" if number == 1 else f"reread {number - 1}: {question or ''}"
        self._pass = self._progress.add_task(label, total=None)

    def _shown(self) -> RenderableType:
        memory = self._memory if len(self._memory) <= _MEMORY_CHARS else f"{self._memory[:_MEMORY_CHARS]} …"
        return Group(self._progress, Panel(Text(memory or "(empty)"), title="memory", title_align="left"))


def show_estimate(estimate: Estimate, console: Console) -> None:
    """Print the most that a read can cost."""
    console.print(
        f"at most {estimate.max_llm_calls:,} calls, {estimate.max_input_tokens:,} tokens in, "
        f"{estimate.max_output_tokens:,} out: {estimate.document_tokens:,} tokens in {estimate.chunks:,} chunks",
        style="dim",
    )


def show_result(read: LongRead, console: Console, *, seconds: float) -> None:
    """Print the answers, how they were found, their evidence and the cost."""
    for output in read.outputs or (_only(read),):
        _show_output(output, console, named=bool(read.outputs))
    usage = read.usage
    console.print(
        f"{usage.total_tokens:,} tokens ({usage.input_tokens:,} in, {usage.output_tokens:,} out) in "
        f"{usage.llm_calls:,} calls, {seconds:.1f} s, strategy {read.strategy}",
        style="dim",
        highlight=False,
    )
    check_whole(read)


def check_whole(read: LongRead) -> None:
    """Raise CliError for a read that ended at a limit."""
    if read.status == "incomplete" and read.incomplete_details is not None:
        raise CliError(f"the read is incomplete: {read.incomplete_details.reason} was reached")


def _only(read: LongRead) -> ReadOutput:
    return ReadOutput(question="", output_text=read.output_text, subquestions=read.subquestions, evidence=read.evidence)


def _show_output(output: ReadOutput, console: Console, *, named: bool) -> None:
    if named:
        console.print(Text.assemble(("question  ", "bold cyan"), output.question))
    for sub in output.subquestions:
        found = sub.answer or "(nothing found)"
        console.print(Text.assemble(("reread  ", "cyan"), sub.question, (" → ", "dim"), found))
    answer = output.output_text or "(the model gave no answer)"
    console.print(Text.assemble(("answer  ", "bold green"), (answer, "bold")))
    for entry in output.evidence:
        console.print(evidence_line(entry))


_COLOURS: Final = {"supported": "green", "similar": "yellow", "unsupported": "red"}


def evidence_line(entry: Evidence) -> Text:
    """Format a statement, and the place of the document that says it."""
    kind = "supported" if entry.supported else "similar" if entry.similar else "unsupported"
    colour = _COLOURS[kind]
    line = Text.assemble((f"{kind:<12}", colour), entry.statement)
    if entry.text is not None:
        line.append(f"\n            {_where(entry)}: “{' '.join(entry.text.split())}”", "dim")
    return line


def _where(entry: Evidence) -> str:
    file = entry.filename or f"characters {entry.start:,} to {entry.end:,}"
    return file if entry.page is None else f"{file}, page {entry.page}"
