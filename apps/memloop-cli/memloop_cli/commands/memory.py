"""``memloop memory``: its commands, with their options."""

import sys
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from memloop.wire.feedback import FeedbackRequest, Verdict
from memloop.wire.memory import Namespace, Source
from memloop.wire.memory_requests import MemoryAdd, MemorySearch
from memloop_cli.commands.writing import memory_line, settled, show_event
from memloop_cli.errors import BadInput, CliError, named_if_missing
from memloop_cli.options import Agent, AsJson, Run, User, Yes, console, through_gateway
from memloop_clients import GatewayClient

_PAGE = 100
_LAST_LINE_BYTES = 200
_VERDICTS: dict[str, Verdict | None] = {
    "helpful": "helpful",
    "wrong": "wrong",
    "outdated": "outdated",
    "withdraw": None,
}
MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, as list and search print it.")]
app = typer.Typer(no_args_is_help=True, help="A user's memories.")


@app.command()
@through_gateway
async def add(
    client: GatewayClient,
    text: Annotated[str, typer.Argument()],
    user: User = "me",
    infer: Annotated[
        bool, typer.Option("--infer/--as-it-is", help="Let the memory writer decide, or store the text verbatim.")
    ] = True,
) -> None:
    """Add something that the user said."""
    if not text.strip():
        raise BadInput("there is nothing to add: the text is empty")
    message = Source(role="user", content=text)
    event_id = await client.add(MemoryAdd(messages=(message,), user_id=user, infer=infer))
    event = await settled(client, event_id)
    show_event(event, console)
    if event.status == "failed":
        raise CliError("nothing was stored")


@app.command()
@through_gateway
async def search(
    client: GatewayClient,
    query: Annotated[str, typer.Argument()],
    user: User = "me",
    top_k: Annotated[int, typer.Option(min=1, max=100)] = 10,
    as_json: AsJson = False,
) -> None:
    """Find memories."""
    if not query.strip():
        raise BadInput("the query is empty")
    found = await client.search(MemorySearch(query=query, user_id=user, top_k=top_k))
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    for memory in found.data:
        console.print(memory_line(memory, score=memory.score))
    _print_if_none(len(found.data), f"{user} has no matching memory")


@app.command("list")
@through_gateway
async def list_all(
    client: GatewayClient,
    user: User = "me",
    limit: Annotated[int, typer.Option(min=1)] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print each memory as a line of JSON, for programs.")] = False,
) -> None:
    """List a user's memories."""
    shown, cursor = 0, None
    while shown < limit:
        page = await client.memories(user, cursor=cursor, limit=min(_PAGE, limit - shown))
        for item in page.data:
            if as_json:
                typer.echo(item.model_dump_json())
            else:
                console.print(memory_line(item))
        shown, cursor = shown + len(page.data), page.next_cursor
        if cursor is None:
            break
    _print_if_none(1 if as_json else shown, f"{user} has no memories")


@app.command()
@through_gateway
async def events(
    client: GatewayClient,
    user: User = "me",
    limit: Annotated[int, typer.Option(min=1, max=200)] = 10,
) -> None:
    """List a user's newest writes with their decisions."""
    page = await client.events(user, limit=limit)
    for event in page.data:
        when = f"{event.created_at:%Y-%m-%d %H:%M:%S}  "
        console.print(Text.assemble((when, "dim"), (event.status, "bold"), (f"  {event.event_id}", "dim")))
        show_event(event, console)
    _print_if_none(len(page.data), f"{user} has no writes yet")


@app.command()
@through_gateway
async def redecide(
    client: GatewayClient,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[EVENT]...", help="Ids, as events prints them.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="All kept writes of this user.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All kept writes of the key's tenant.")] = False,
) -> None:
    """Decide again on what was kept word for word because the memory writer gave no usable decision."""
    if sum((bool(ids), user is not None, everything)) != 1:
        raise BadInput("name events, or a user with --user, or take --all")
    for event_id in ids or ():
        with named_if_missing(event_id):
            await client.redecide_event(event_id)
    queued, more = (ids, False) if ids else await client.redecide(user)
    for event_id in queued:
        event = await settled(client, event_id)
        console.print(Text.assemble((event.status, "bold"), (f"  {event.event_id}", "dim")))
        show_event(event, console)
    _print_if_none(len(queued), "no write was kept word for word")
    if more:
        console.print("there are more: run the command again", style="dim")


@app.command()
@through_gateway
async def delete(client: GatewayClient, ids: Annotated[list[str], typer.Argument(metavar="ID...")]) -> None:
    """Delete memories. Each can be recovered while its history lasts."""
    for item_id in ids:
        with named_if_missing(item_id):
            await client.delete_memory(item_id)
        console.print(Text(f"deleted  {item_id}"))


@app.command()
@through_gateway
async def history(client: GatewayClient, item_id: MemoryId, as_json: AsJson = False) -> None:
    """List all versions of a memory, oldest first."""
    with named_if_missing(item_id):
        found = await client.history(item_id)
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    for version in found.data:
        state = version.status if version.valid_to is None else f"until {version.valid_to:%Y-%m-%d}"
        console.print(Text.assemble(memory_line(version), (f"  {state}", "dim")))


@app.command()
@through_gateway
async def export(
    client: GatewayClient,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file; default: standard output.")] = Path("-"),
    user: User = "me",
    agent: Agent = None,
    run: Run = None,
    raw: Annotated[bool, typer.Option("--raw", help="The raw turns too.")] = False,
) -> None:
    """Write a user's memories, every version, as JSONL that `memloop import memloop` takes back."""
    namespace = Namespace(tenant="-", user_id=user, agent_id=agent, run_id=run)
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


@app.command()
@through_gateway
async def erase(
    client: GatewayClient,
    user: Annotated[str, typer.Option("--user", help="The user; there is no default.")],
    agent: Agent = None,
    run: Run = None,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be erased, and erase nothing.")] = False,
) -> None:
    """Erase all data of a user: memories, buffers, waiting writes, events. It cannot be undone."""
    parts = (("user", user), ("agent", agent), ("run", run))
    named = ", ".join(f"{kind} {name}" for kind, name in parts if name is not None)
    if not yes and not dry_run:
        typer.confirm(f"Erase all data of {named}?", abort=True)
    namespace = Namespace(tenant="-", user_id=user, agent_id=agent, run_id=run)
    erased = await client.erase_namespace(namespace, dry_run=dry_run)
    done = "would erase" if dry_run else "erased"
    console.print(
        Text(
            f"{done}  {erased.vectors} memories and turns, {erased.buffers} buffers, {erased.queue} waiting writes, "
            f"{erased.events} events, {erased.derived} derived records of {named}"
        )
    )


@app.command()
@through_gateway
async def feedback(
    client: GatewayClient,
    memory_id: MemoryId,
    verdict: Annotated[str, typer.Argument(help="helpful, wrong or outdated; withdraw takes it back.")],
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
) -> None:
    """Give a verdict on a memory, which searches and audits use."""
    if verdict not in _VERDICTS:
        raise BadInput(f"the verdict is one of {', '.join(_VERDICTS)}")
    with named_if_missing(memory_id):
        judged = await client.feedback(memory_id, FeedbackRequest(feedback=_VERDICTS[verdict], reason=reason))
    shown = judged.feedback.verdict if judged.feedback else "no verdict"
    console.print(Text.assemble((f"{shown}  ", "bold"), judged.memory))


@app.command()
@through_gateway
async def audit(
    client: GatewayClient,
    user: User = "me",
    stale_after_days: Annotated[int | None, typer.Option(min=1, help="Also list facts not stated again since.")] = None,
    as_json: AsJson = False,
) -> None:
    """List a user's duplicate, contradictory, stale and junk memories."""
    found = await client.audit(user, stale_after_days=stale_after_days)
    if as_json:
        console.print(found.model_dump_json(), markup=False)
        return
    bound = "" if found.complete else ", the first of more"
    console.print(f"{found.memories} memories of {found.user_id}{bound}; {found.raw_turns} raw turns", markup=False)
    if found.feedback:
        console.print("feedback: " + ", ".join(f"{count} {verdict}" for verdict, count in found.feedback.items()))
    for finding in found.findings:
        style = "yellow" if finding.memories else "dim"
        console.print(Text(f"{finding.suspicion:14} {finding.memories:6}  {finding.share:6.1%}", style=style))
        for example in finding.examples:
            console.print(Text(f"  {example.rule}: {example.because}", style="dim"))
            for memory in example.memories:
                console.print(Text.assemble((f"    {memory.id}  ", "dim"), memory.excerpt))


def _print_if_none(count: int, message: str) -> None:
    if count == 0:
        console.print(message, style="dim")
