"""``memloop import``."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from memloop_cli.errors import BadInput, CliError, errors_printed
from memloop_cli.home import Home, gateway_url
from memloop_cli.importing.counts import Counts
from memloop_cli.importing.entries import Entry, Fact, Unreadable, stable_id
from memloop_cli.importing.formats import chatgpt, claude, jsonl, langgraph, mem0, zep
from memloop_cli.importing.own import import_export
from memloop_cli.importing.sending import DoneNotes, Sender, Target, check
from memloop_cli.importing.source_api import langgraph_records, mem0_records
from memloop_cli.importing.streaming import Record, opened, records
from memloop_cli.importing.zep_api import zep_records
from memloop_cli.options import HOME, HomeFolder, Key, Url, console, with_gateway
from memloop_clients import GatewayClient


class Kind(StrEnum):
    """The systems that memories come from."""

    MEM0 = "mem0"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    ZEP = "zep"
    LANGGRAPH = "langgraph"
    JSONL = "jsonl"
    MEMLOOP = "memloop"


@dataclass(frozen=True, slots=True)
class _Format:
    entries: Callable[[object], Iterator[Entry]]
    inside: tuple[str, ...]
    members: tuple[str, ...]


_FORMATS: Final = {
    Kind.MEM0: _Format(mem0.entries, mem0.INSIDE, mem0.MEMBERS),
    Kind.CHATGPT: _Format(chatgpt.entries, chatgpt.INSIDE, chatgpt.MEMBERS),
    Kind.CLAUDE: _Format(claude.entries, claude.INSIDE, claude.MEMBERS),
    Kind.ZEP: _Format(zep.entries, zep.INSIDE, zep.MEMBERS),
    Kind.LANGGRAPH: _Format(langgraph.entries, langgraph.INSIDE, langgraph.MEMBERS),
    Kind.JSONL: _Format(jsonl.entries, jsonl.INSIDE, jsonl.MEMBERS),
}
_ACCOUNTS: Final = frozenset((Kind.CHATGPT, Kind.CLAUDE))
"""Exports that come as archives, which some browsers unpack."""
_MEM0_URL: Final = "https://api.mem0.ai"
_ZEP_URL: Final = "https://api.getzep.com/api/v4"


@dataclass(frozen=True, slots=True)
class _Live:
    """Another system's own API, which is read if no file is named."""

    kind: Kind
    url: str | None
    key: str | None

    def check(self, user: str | None) -> None:
        """Raise BadInput unless all is given that the API needs."""
        match self.kind:
            case Kind.MEM0 | Kind.ZEP if not user or not self.key:
                variable = f"{self.kind.upper()}_API_KEY"
                raise BadInput(f"name a file; or, of {self.kind}'s API, a --user and the key ({variable})")
            case Kind.LANGGRAPH if not self.url:
                raise BadInput("name a file; or, of a deployment's API, its address (LANGGRAPH_URL)")
            case Kind.MEM0 | Kind.ZEP | Kind.LANGGRAPH:
                return
            case _:
                raise BadInput("name a file")

    def records(self, user: str) -> AsyncGenerator[Record]:
        """Yield what the API has of the user; of LangGraph, all items."""
        if self.kind is Kind.LANGGRAPH:
            return langgraph_records(self.url or "", self.key)
        read = mem0_records if self.kind is Kind.MEM0 else zep_records
        return read(self.url or "", self.key or "", user)


def import_memories(
    kind: Annotated[Kind, typer.Argument(metavar="FORMAT", help=f"{', '.join(Kind)}.")],
    file: Annotated[
        Path | None, typer.Argument(help="The export: JSON, JSON lines, its ZIP archive, or that unpacked.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Whose memory it becomes; default: as the file names it, else me.")
    ] = None,
    user_part: Annotated[
        int | None, typer.Option(help="langgraph: the part of each namespace, from 0, that is the user.")
    ] = None,
    infer: Annotated[
        bool, typer.Option("--infer/--raw", help="Chats: through the memory writer, or as raw turns.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Send also what an earlier import has sent.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and count; send nothing.")] = False,
    mem0_url: Annotated[
        str, typer.Option(envvar="MEM0_URL", help="mem0: its API, read if no file is named.")
    ] = _MEM0_URL,
    mem0_key: Annotated[str | None, typer.Option(envvar="MEM0_API_KEY", help="mem0: its API's key.")] = None,
    zep_url: Annotated[
        str, typer.Option(envvar="ZEP_URL", help="zep: its API, read if no file is named; …/api/v2 is version 3.")
    ] = _ZEP_URL,
    zep_key: Annotated[str | None, typer.Option(envvar="ZEP_API_KEY", help="zep: its API's key.")] = None,
    langgraph_url: Annotated[
        str | None, typer.Option(envvar="LANGGRAPH_URL", help="langgraph: a deployment, read if no file is named.")
    ] = None,
    langgraph_key: Annotated[
        str | None, typer.Option(envvar="LANGGRAPH_API_KEY", help="langgraph: the deployment's key, if it has one.")
    ] = None,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Import memories and chats of other systems, with their original times.

    A repeated or killed import continues where it stopped and stores nothing twice.
    """
    apis = {Kind.MEM0: (mem0_url, mem0_key), Kind.ZEP: (zep_url, zep_key)}
    live = _Live(kind, *apis.get(kind, (langgraph_url, langgraph_key)))
    with errors_printed():
        _check(kind, file, user, user_part, live)
    target = Target(kind.value, user or "me", forced=user is not None, infer=infer)
    counts = Counts()
    notes = home / "imports" / f"{stable_id(gateway_url(Home(home), url), kind.value)}.done"
    done = DoneNotes(notes, empty=again)

    def found() -> AsyncGenerator[Record]:
        return _from_file(file, _FORMATS[kind]) if file else live.records(target.user)

    async def work(client: GatewayClient) -> None:
        reached = None if dry_run else client
        try:
            if kind is Kind.MEMLOOP and file is not None:
                await import_export(reached, file, counts, user=user)
            else:
                sender = Sender(reached, target, counts, done) if reached is not None else None
                await _import(found(), kind, target, counts, sender, user_part)
        finally:
            counts.show(console, dry_run=dry_run)
        if counts.failed:
            raise CliError(f"{counts.failed:,} could not be imported")

    with_gateway(work, home=home, url=url, api_key=api_key)


def _check(kind: Kind, file: Path | None, user: str | None, user_part: int | None, live: _Live) -> None:
    """Raise BadInput for arguments that do not go together."""
    if kind is Kind.LANGGRAPH and (user is None) == (user_part is None):
        raise BadInput("name the user of a LangGraph store: --user NAME, or --user-part N of its namespaces")
    if file is None:
        live.check(user)
    elif not file.is_file() and not (file.is_dir() and kind in _ACCOUNTS):
        raise BadInput(f"there is no file {file}")


async def _import(
    found: AsyncGenerator[Record], kind: Kind, target: Target, counts: Counts, sender: Sender | None, part: int | None
) -> None:
    with console.status("importing") as status:
        async with aclosing(found):
            async for record in found:
                for entry in _entries(record, kind, counts, part):
                    await _one(record.number, entry, target, counts, sender)
                status.update(f"importing: {counts.line}")
        if sender is not None:
            await sender.close()


async def _one(number: int, entry: Entry, target: Target, counts: Counts, sender: Sender | None) -> None:
    size = _count(entry, counts)
    try:
        check(entry, target)
    except ValueError as error:
        counts.fail(number, str(error), count=size)
        return
    if sender is not None:
        await sender.send(number, entry)
    else:
        counts.kept += size


def _count(entry: Entry, counts: Counts) -> int:
    """Count what the entry holds; return the turns or memories that are to be sent."""
    if isinstance(entry, Fact):
        counts.taken += 1
        counts.saw(entry.at)
        return 1
    counts.taken += len(entry.turns) + entry.dropped
    counts.ignored += entry.dropped
    for turn in entry.turns:
        counts.saw(turn.at)
    return len(entry.turns)


def _entries(record: Record, kind: Kind, counts: Counts, part: int | None) -> Iterator[Entry]:
    """Yield what a record holds; count it as failed if it is unreadable."""
    if record.problem:
        counts.taken += 1
        counts.fail(record.number, record.problem)
        return
    try:
        for entry in _FORMATS[kind].entries(record.value):
            yield langgraph.user_at(entry, part) if part is not None and isinstance(entry, Fact) else entry
    except (Unreadable, RecursionError, ValueError) as error:
        counts.taken += 1
        counts.fail(record.number, str(error) if isinstance(error, Unreadable) else "the record is malformed")


async def _from_file(file: Path, form: _Format) -> AsyncGenerator[Record]:
    with opened(file, form.members) as files:
        before = 0
        for one in files:
            number = 0
            for record in records(one, inside=form.inside):
                number = record.number
                yield Record(before + number, record.value, record.problem)
            before += number
