"""``memloop memory``: its commands and their options."""

from pathlib import Path
from typing import Annotated

import typer

from memloop.wire.memory import Namespace
from memloop_cli.commands import memory, quality
from memloop_cli.options import Agent, AsJson, Run, User, Yes, console, through_gateway
from memloop_clients import GatewayClient

MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, as list and search print it.")]
app = typer.Typer(no_args_is_help=True, help="A user's memories.")


@app.command("add")
@through_gateway
async def memory_add(
    client: GatewayClient,
    text: Annotated[str, typer.Argument()],
    user: User = "me",
    infer: Annotated[
        bool, typer.Option("--infer/--as-it-is", help="Let the memory writer decide, or store the text verbatim.")
    ] = True,
) -> None:
    """Add something that the user said."""
    await memory.add(client, console, text=text, user_id=user, infer=infer)


@app.command("search")
@through_gateway
async def memory_search(
    client: GatewayClient,
    query: Annotated[str, typer.Argument()],
    user: User = "me",
    top_k: Annotated[int, typer.Option(min=1, max=100)] = 10,
    as_json: AsJson = False,
) -> None:
    """Find memories."""
    await memory.search(client, console, query=query, user_id=user, top_k=top_k, as_json=as_json)


@app.command("list")
@through_gateway
async def memory_list(
    client: GatewayClient,
    user: User = "me",
    limit: Annotated[int, typer.Option(min=1)] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print each memory as a line of JSON, for programs.")] = False,
) -> None:
    """List a user's memories."""
    await memory.list_all(client, console, user_id=user, limit=limit, as_json=as_json)


@app.command("events")
@through_gateway
async def memory_events(
    client: GatewayClient,
    user: User = "me",
    limit: Annotated[int, typer.Option(min=1, max=200)] = 10,
) -> None:
    """List a user's newest writes with their decisions."""
    await memory.events(client, console, user_id=user, limit=limit)


@app.command("redecide")
@through_gateway
async def memory_redecide(
    client: GatewayClient,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[EVENT]...", help="Ids, as events prints them.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="All kept writes of this user.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All kept writes of the key's tenant.")] = False,
) -> None:
    """Decide again on what was kept word for word because the memory writer gave no usable decision."""
    await memory.redecide(client, console, ids or (), user_id=user, everything=everything)


@app.command("delete")
@through_gateway
async def memory_delete(
    client: GatewayClient,
    ids: Annotated[list[str], typer.Argument(metavar="ID...")],
) -> None:
    """Delete memories. Each can be recovered while its history lasts."""
    await memory.delete(client, console, ids)


@app.command("history")
@through_gateway
async def memory_history(
    client: GatewayClient,
    item_id: MemoryId,
    as_json: AsJson = False,
) -> None:
    """List all versions of a memory, oldest first."""
    await memory.history(client, console, item_id, as_json=as_json)


@app.command("export")
@through_gateway
async def memory_export(
    client: GatewayClient,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file; default: standard output.")] = Path("-"),
    user: User = "me",
    agent: Agent = None,
    run: Run = None,
    raw: Annotated[bool, typer.Option("--raw", help="The raw turns too.")] = False,
) -> None:
    """Write a user's memories, every version, as JSONL that `memloop import memloop` takes back."""
    namespace = Namespace(tenant="-", user_id=user, agent_id=agent, run_id=run)
    await memory.export(client, namespace, output, raw=raw)


@app.command("erase")
@through_gateway
async def memory_erase(
    client: GatewayClient,
    user: Annotated[str, typer.Option("--user", help="The user; there is no default.")],
    agent: Agent = None,
    run: Run = None,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be erased, and erase nothing.")] = False,
) -> None:
    """Erase all data of a user: memories, buffers, waiting writes, events. It cannot be undone."""
    namespace = Namespace(tenant="-", user_id=user, agent_id=agent, run_id=run)
    await memory.erase(client, console, namespace, asked=not yes, dry_run=dry_run)


@app.command("feedback")
@through_gateway
async def memory_feedback(
    client: GatewayClient,
    memory_id: MemoryId,
    verdict: Annotated[str, typer.Argument(help="helpful, wrong or outdated; withdraw takes it back.")],
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
) -> None:
    """Give a verdict on a memory, which searches and audits use."""
    await quality.feedback(client, console, memory_id=memory_id, verdict=verdict, reason=reason)


@app.command("audit")
@through_gateway
async def memory_audit(
    client: GatewayClient,
    user: User = "me",
    stale_after_days: Annotated[int | None, typer.Option(min=1, help="Also list facts not stated again since.")] = None,
    as_json: AsJson = False,
) -> None:
    """List a user's duplicate, contradictory, stale and junk memories."""
    await quality.audit(client, console, user_id=user, stale_after_days=stale_after_days, as_json=as_json)
