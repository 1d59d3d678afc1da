"""``memloop read``: a long read with its progress, its memory and its rereads, live."""

import sys
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from memloop.clients.gateway import GatewayClient
from memloop.wire.long_read import LongRead, LongReadRequest, ReadEvent
from memloop_cli.errors import BadInput, CliError

_MEMORY_CHARS = 1_200


class Watcher(Protocol):
    """Receives every event of a read."""

    def see(self, event: ReadEvent) -> None:
        """Show it."""
        ...


def document_text(path: Path) -> str:
    """Read a text file, or standard input for ``-``. Raises BadInput if it is not text."""
    if str(path) == "-":
        raw = sys.stdin.buffer.read()
    elif path.is_file():
        raw = path.read_bytes()
    else:
        raise BadInput(f"{path} is a folder" if path.is_dir() else f"there is no file {path}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text (byte {error.start}): is it a PDF or an image?") from error
    if "\0" in text:
        raise BadInput(f"{path} is binary: it contains NUL")
    if not text.strip():
        raise BadInput(f"{path} is empty")
    return text


def question_text(question: str) -> str:
    """Return the stripped question. Raises BadInput when it is empty."""
    if not question.strip():
        raise BadInput("the question is empty")
    return question


async def read_to_end(client: GatewayClient, request: LongReadRequest, watcher: Watcher) -> LongRead:
    """Return the finished read. Raises CliError when it failed, was cancelled or its stream ended early."""
    last: LongRead | None = None
    async with aclosing(client.stream_read(request)) as events:
        async for event in events:
            watcher.see(event)
            last = event.read or last
    if last is None or last.status not in {"completed", "incomplete"}:
        why = last.error.message if last is not None and last.error is not None else "its stream ended too early"
        raise CliError(f"the read failed: {why}")
    return last


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


def show_result(read: LongRead, console: Console, *, seconds: float) -> None:
    """Print the answer, how it was found and its cost."""
    for sub in read.subquestions:
        found = sub.answer or "(nothing found)"
        console.print(Text.assemble(("reread  ", "cyan"), sub.question, (" → ", "dim"), found))
    console.print(Text.assemble(("answer  ", "bold green"), (read.output_text or "(the model gave no answer)", "bold")))
    usage = read.usage
    console.print(
        f"{usage.total_tokens:,} tokens ({usage.input_tokens:,} in, {usage.output_tokens:,} out) in "
        f"{usage.llm_calls:,} calls, {seconds:.1f} s, strategy {read.strategy}",
        style="dim",
        highlight=False,
    )
    if read.status == "incomplete" and read.incomplete_details is not None:
        raise CliError(f"the read is incomplete: {read.incomplete_details.reason} was reached")
