"""``memloop memory``: its commands and their options."""

from pathlib import Path
from typing import Annotated

import typer

from memloop.clients import GatewayClient
from memloop.wire.memory import Namespace
from memloop_cli.commands import memory, quality
from memloop_cli.options import HOME, Agent, AsJson, HomeFolder, Key, Run, Url, User, Yes, console, with_gateway

MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, as list and search print it.")]
app = typer.Typer(no_args_is_help=True, help="A user's memories.")


@app.command("add")
def memory_add(
    text: Annotated[str, typer.Argument()],
    user: User = "me",
    infer: Annotated[
        bool, typer.Option("--infer/--as-it-is", help="Let the memory writer decide, or store the text verbatim.")
    ] = True,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Add something that the user said."""

    async def work(client: GatewayClient) -> None:
        await memory.add(client, console, text=text, user_id=user, infer=infer)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("search")
def memory_search(
    query: Annotated[str, typer.Argument()],
    user: User = "me",
    top_k: Annotated[int, typer.Option(min=1, max=100)] = 10,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Find memories."""

    async def work(client: GatewayClient) -> None:
        await memory.search(client, console, query=query, user_id=user, top_k=top_k)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("list")
def memory_list(
    user: User = "me",
    limit: Annotated[int, typer.Option(min=1)] = 100,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """List a user's memories."""

    async def work(client: GatewayClient) -> None:
        await memory.list_all(client, console, user_id=user, limit=limit)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("events")
def memory_events(
    user: User = "me",
    limit: Annotated[int, typer.Option(min=1, max=200)] = 10,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """List a user's newest writes with their decisions."""

    async def work(client: GatewayClient) -> None:
        await memory.events(client, console, user_id=user, limit=limit)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("delete")
def memory_delete(
    ids: Annotated[list[str], typer.Argument(metavar="ID...")],
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Delete memories. Each can be recovered while its history lasts."""

    async def work(client: GatewayClient) -> None:
        await memory.delete(client, console, ids)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("history")
def memory_history(
    item_id: MemoryId,
    as_json: AsJson = False,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """List all versions of a memory, oldest first."""

    async def work(client: GatewayClient) -> None:
        await memory.history(client, console, item_id, as_json=as_json)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("export")
def memory_export(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file; default: standard output.")] = Path("-"),
    user: User = "me",
    agent: Agent = None,
    run: Run = None,
    raw: Annotated[bool, typer.Option("--raw", help="The raw turns too.")] = False,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Write a user's memories, every version, as JSONL that `memloop import memloop` takes back."""

    async def work(client: GatewayClient) -> None:
        namespace = Namespace(tenant="-", user_id=user, agent_id=agent, run_id=run)
        await memory.export(client, namespace, output, raw=raw)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("erase")
def memory_erase(
    user: Annotated[str, typer.Option("--user", help="The user; there is no default.")],
    agent: Agent = None,
    run: Run = None,
    yes: Yes = False,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Erase all data of a user: memories, buffers, waiting writes, events. It cannot be undone."""

    async def work(client: GatewayClient) -> None:
        namespace = Namespace(tenant="-", user_id=user, agent_id=agent, run_id=run)
        await memory.erase(client, console, namespace, asked=not yes)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("feedback")
def memory_feedback(
    memory_id: MemoryId,
    verdict: Annotated[str, typer.Argument(help="helpful, wrong or outdated; withdraw takes it back.")],
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Give a verdict on a memory, which searches and audits use."""

    async def work(client: GatewayClient) -> None:
        await quality.feedback(client, console, memory_id=memory_id, verdict=verdict, reason=reason)

    with_gateway(work, home=home, url=url, api_key=api_key)


@app.command("audit")
def memory_audit(
    user: User = "me",
    stale_after_days: Annotated[int | None, typer.Option(min=1, help="Also list facts not stated again since.")] = None,
    as_json: AsJson = False,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """List a user's duplicate, contradictory, stale and junk memories."""

    async def work(client: GatewayClient) -> None:
        await quality.audit(client, console, user_id=user, stale_after_days=stale_after_days, as_json=as_json)

    with_gateway(work, home=home, url=url, api_key=api_key)
