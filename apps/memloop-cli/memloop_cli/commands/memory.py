"""``memloop memory``: add, search, list, events, redecide, delete, history, export, erase."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from memloop.wire.memory import Namespace, Source
from memloop.wire.memory_requests import MemoryAdd, MemorySearch
from memloop_cli.commands.writing import memory_line, settled, show_event
from memloop_cli.errors import BadInput, CliError, named_if_missing
from memloop_clients.gateway import GatewayClient

_PAGE = 100
_LAST_LINE_BYTES = 200


async def add(client: GatewayClient, console: Console, *, text: str, user_id: str, infer: bool) -> None:
    """Send a turn to the memory writer, or store it as it is. Raises CliError when the write failed."""
    if not text.strip():
        raise BadInput("there is nothing to add: the text is empty")
    message = Source(role="user", content=text)
    event_id = await client.add(MemoryAdd(messages=(message,), user_id=user_id, infer=infer))
    event = await settled(client, event_id)
    show_event(event, console)
    if event.status == "failed":
        raise CliError("nothing was stored")


async def search(
    client: GatewayClient, console: Console, *, query: str, user_id: str, top_k: int, as_json: bool
) -> None:
    """Print the best memories for a query."""
    if not query.strip():
        raise BadInput("the query is empty")
    found = await client.search(MemorySearch(query=query, user_id=user_id, top_k=top_k))
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    for memory in found.data:
        console.print(memory_line(memory, score=memory.score))
    _print_if_none(console, len(found.data), f"{user_id} has no matching memory")


async def list_all(client: GatewayClient, console: Console, *, user_id: str, limit: int, as_json: bool) -> None:
    """Print a user's memories."""
    shown, cursor = 0, None
    while shown < limit:
        page = await client.memories(user_id, cursor=cursor, limit=min(_PAGE, limit - shown))
        for item in page.data:
            if as_json:
                typer.echo(item.model_dump_json())
            else:
                console.print(memory_line(item))
        shown, cursor = shown + len(page.data), page.next_cursor
        if cursor is None:
            break
    _print_if_none(console, 1 if as_json else shown, f"{user_id} has no memories")


async def events(client: GatewayClient, console: Console, *, user_id: str, limit: int) -> None:
    """Print a user's newest writes and the reasons of their decisions."""
    page = await client.events(user_id, limit=limit)
    for event in page.data:
        when = f"{event.created_at:%Y-%m-%d %H:%M:%S}  "
        console.print(Text.assemble((when, "dim"), (event.status, "bold"), (f"  {event.event_id}", "dim")))
        show_event(event, console)
    _print_if_none(console, len(page.data), f"{user_id} has no writes yet")


async def redecide(
    client: GatewayClient, console: Console, ids: Sequence[str], *, user_id: str | None, everything: bool
) -> None:
    """Decide again on writes that were kept word for word: those named, a user's, or all of the tenant's."""
    if sum((bool(ids), user_id is not None, everything)) != 1:
        raise BadInput("name events, or a user with --user, or take --all")
    for event_id in ids:
        with named_if_missing(event_id):
            await client.redecide_event(event_id)
    queued, more = (ids, False) if ids else await client.redecide(user_id)
    for event_id in queued:
        event = await settled(client, event_id)
        console.print(Text.assemble((event.status, "bold"), (f"  {event.event_id}", "dim")))
        show_event(event, console)
    _print_if_none(console, len(queued), "no write was kept word for word")
    if more:
        console.print("there are more: run the command again", style="dim")


async def delete(client: GatewayClient, console: Console, ids: Sequence[str]) -> None:
    """Delete memories one after another."""
    for item_id in ids:
        with named_if_missing(item_id):
            await client.delete_memory(item_id)
        console.print(Text(f"deleted  {item_id}"))


async def history(client: GatewayClient, console: Console, item_id: str, *, as_json: bool) -> None:
    """Print all versions of a memory."""
    with named_if_missing(item_id):
        found = await client.history(item_id)
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    for version in found.data:
        state = version.status if version.valid_to is None else f"until {version.valid_to:%Y-%m-%d}"
        console.print(Text.assemble(memory_line(version), (f"  {state}", "dim")))


async def export(client: GatewayClient, namespace: Namespace, output: Path, *, raw: bool) -> None:
    """Write the lines of an export. Raises CliError when it is not whole."""
    last = b""
    with ExitStack() as stack:
        out = sys.stdout.buffer if str(output) == "-" else stack.enter_context(output.open("wb"))
        async with aclosing(client.export_memory(namespace, include_raw=raw)) as blocks:
            async for block in blocks:
                out.write(block)
                last = (last + block)[-_LAST_LINE_BYTES:]
        out.flush()
    if not last.rstrip(b"\n").rpartition(b"\n")[2].startswith(b'{"exported":'):
        raise CliError("the export is not whole: the gateway ended it early")


async def erase(client: GatewayClient, console: Console, namespace: Namespace, *, asked: bool, dry_run: bool) -> None:
    """Erase a namespace, after a question; ``dry_run`` only counts."""
    parts = (("user", namespace.user_id), ("agent", namespace.agent_id), ("run", namespace.run_id))
    named = ", ".join(f"{kind} {name}" for kind, name in parts if name is not None)
    if asked and not dry_run:
        typer.confirm(f"Erase all data of {named}?", abort=True)
    erased = await client.erase_namespace(namespace, dry_run=dry_run)
    done = "would erase" if dry_run else "erased"
    console.print(
        Text(
            f"{done}  {erased.vectors} memories and turns, {erased.buffers} buffers, {erased.queue} waiting writes, "
            f"{erased.events} events, {erased.derived} derived records of {named}"
        )
    )


def _print_if_none(console: Console, count: int, message: str) -> None:
    if count == 0:
        console.print(message, style="dim")
