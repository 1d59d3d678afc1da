"""``memloop``: the local stack and the user's command line. Run ``memloop --help``.

Exit codes: 0 done, 1 failed, 2 invalid input, 130 interrupted.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from memloop.clients import GatewayClient, Timeouts
from memloop.wire.chat import Json
from memloop.wire.long_read import Document, LongReadRequest, Strategy
from memloop_cli.agents.commands import agent, connect
from memloop_cli.commands import keys as key_commands
from memloop_cli.commands import memory as memory_commands
from memloop_cli.commands.chat import Conversation, converse
from memloop_cli.commands.models import first_model
from memloop_cli.commands.read import LiveRead, document_text, question_text, read_to_end, show_result
from memloop_cli.demo.run import run_demo
from memloop_cli.errors import CliError, errors_printed, gateway_errors
from memloop_cli.home import Home, gateway_url
from memloop_cli.stack.given_engine import ENGINE_API_KEY, ENGINE_URL, MODEL, GivenEngine, check_engine
from memloop_cli.stack.local import ports_from
from memloop_cli.stack.up import down as stop_stack
from memloop_cli.stack.up import stay_up, up_detached

_HELP = "The local stack and the command line of Memloop."
_TIMEOUTS = Timeouts(connect_s=5.0, read_s=600.0, total_s=600.0)
_LAST_BASE_PORT = 65_530

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=_HELP)
memory = typer.Typer(no_args_is_help=True, help="A user's memories.")
app.add_typer(memory, name="memory")
keys = typer.Typer(no_args_is_help=True, help="The gateway's API keys; needs a key with the scope admin.")
app.add_typer(keys, name="keys")
app.add_typer(agent, name="agent", hidden=True)
app.command()(connect)
console = Console(highlight=False, soft_wrap=True)

HomeFolder = Annotated[Path, typer.Option("--home", envvar="MEMLOOP_HOME", help="The stack's folder: data and logs.")]
Url = Annotated[str | None, typer.Option("--url", envvar="MEMLOOP_URL", help="The gateway; default: the local stack.")]
Key = Annotated[str | None, typer.Option("--api-key", envvar="MEMLOOP_API_KEY", help="The gateway's API key.")]
User = Annotated[str, typer.Option("--user", help="The user whose memory is used.")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="The tenant; default: the admin key's own.")]
Model = Annotated[str | None, typer.Option("--model", help="A served model's id; default: the first.")]
ReaderModel = Annotated[str | None, typer.Option("--model", help="A served model's id; default: the reader.")]
Port = Annotated[
    int,
    typer.Option(
        "--port",
        min=1024,
        max=_LAST_BASE_PORT,
        help="The gateway's port; the next five are used too, with a second model seven.",
    ),
]
EngineUrl = Annotated[
    str | None,
    typer.Option(
        "--engine-url", envvar=ENGINE_URL, help="An OpenAI-compatible endpoint; ends before /chat/completions."
    ),
]
EngineModel = Annotated[str | None, typer.Option("--model", envvar=MODEL, help="The model's id at that endpoint.")]
EngineKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        envvar=ENGINE_API_KEY,
        show_envvar=True,
        help="The endpoint's key; the variable keeps it out of ps.",
    ),
]
_HOME = Path(".memloop")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(version("memloop-cli"))
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command()
def up(
    home: HomeFolder = _HOME,
    port: Port = 7800,
    detach: Annotated[bool, typer.Option("--detach", help="Leave it running in the background.")] = False,
    engine_url: EngineUrl = None,
    model: EngineModel = None,
    api_key: EngineKey = None,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Ask the engine for a short reply first.")] = True,
) -> None:
    """Start the local stack: Redis, memory store, engine, gateway, worker. Ctrl-C stops it.

    With --engine-url it starts no engine.
    """
    environment = GivenEngine(engine_url, model, api_key).environment(os.environ)
    with errors_printed():
        ports = ports_from(port, environment)
        if check:
            asyncio.run(check_engine(environment))
        if detach:
            up_detached(Home(home), ports, environment, console)
        else:
            asyncio.run(stay_up(Home(home), ports, environment, console))


@app.command()
def down(home: HomeFolder = _HOME) -> None:
    """Stop the local stack."""
    with errors_printed():
        stop_stack(Home(home), console)


@app.command()
def read(
    file: Annotated[Path, typer.Argument(help="A text file, or - for standard input.")],
    question: Annotated[str, typer.Argument()],
    strategy: Annotated[Strategy, typer.Option(help="memreread rereads for missing facts.")] = "memagent",
    max_rereads: Annotated[int, typer.Option(min=0, max=16)] = 2,
    model: ReaderModel = None,
    home: HomeFolder = _HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Read a text of any length and answer a question about it."""

    async def work(client: GatewayClient) -> None:
        text = document_text(file)
        request = LongReadRequest(
            model=model,
            question=question_text(question),
            document=Document(text=text),
            strategy=strategy,
            max_rereads=max_rereads,
        )
        began = time.monotonic()
        with LiveRead(console) as live:
            result = await read_to_end(client, request, live)
        show_result(result, console, seconds=time.monotonic() - began)

    _with_gateway(work, home=home, url=url, api_key=api_key)


@app.command()
def chat(
    user: User = "me",
    model: Model = None,
    thinking: Annotated[bool | None, typer.Option("--thinking/--no-thinking", help="Default: the model's own.")] = None,
    home: HomeFolder = _HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Chat with a model that remembers; prints the memories that it recalls and stores."""
    more: Json = {} if thinking is None else {"chat_template_kwargs": {"enable_thinking": thinking}}
    with errors_printed(), asyncio.Runner() as runner:
        client = _client(home, url, api_key)
        try:
            with gateway_errors(client.url):
                served = model or runner.run(first_model(client))
            converse(Conversation(client, console, user_id=user, model=served, more=more), runner, console)
        finally:
            runner.run(client.close())


@memory.command("add")
def memory_add(
    text: Annotated[str, typer.Argument()],
    user: User = "me",
    infer: Annotated[
        bool, typer.Option("--infer/--as-it-is", help="Let the memory writer decide, or store the text verbatim.")
    ] = True,
    home: HomeFolder = _HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Add something that the user said."""

    async def work(client: GatewayClient) -> None:
        await memory_commands.add(client, console, text=text, user_id=user, infer=infer)

    _with_gateway(work, home=home, url=url, api_key=api_key)


@memory.command("search")
def memory_search(
    query: Annotated[str, typer.Argument()],
    user: User = "me",
    top_k: Annotated[int, typer.Option(min=1, max=100)] = 10,
    home: HomeFolder = _HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Find memories."""

    async def work(client: GatewayClient) -> None:
        await memory_commands.search(client, console, query=query, user_id=user, top_k=top_k)

    _with_gateway(work, home=home, url=url, api_key=api_key)


@memory.command("list")
def memory_list(
    user: User = "me",
    limit: Annotated[int, typer.Option(min=1)] = 100,
    home: HomeFolder = _HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """List a user's memories."""

    async def work(client: GatewayClient) -> None:
        await memory_commands.list_all(client, console, user_id=user, limit=limit)

    _with_gateway(work, home=home, url=url, api_key=api_key)


@memory.command("events")
def memory_events(
    user: User = "me",
    limit: Annotated[int, typer.Option(min=1, max=200)] = 10,
    home: HomeFolder = _HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """List a user's newest writes with their decisions."""

    async def work(client: GatewayClient) -> None:
        await memory_commands.events(client, console, user_id=user, limit=limit)

    _with_gateway(work, home=home, url=url, api_key=api_key)


@keys.command("create")
def keys_create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    tenant: Tenant = None,
    scopes: Annotated[str | None, typer.Option(help="Joined with +; default: all but admin.")] = None,
    expires: Annotated[str | None, typer.Option(help="A date or a time; default: never.")] = None,
    home: HomeFolder = _HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Create a key and print its secret once."""

    async def work(client: GatewayClient) -> None:
        request = key_commands.asked(name, tenant=tenant, scopes=scopes, expires=expires)
        await key_commands.create(client, console, request)

    _with_gateway(work, home=home, url=url, api_key=api_key)


@keys.command("list")
def keys_list(tenant: Tenant = None, home: HomeFolder = _HOME, url: Url = None, api_key: Key = None) -> None:
    """List a tenant's keys."""

    async def work(client: GatewayClient) -> None:
        await key_commands.list_all(client, console, tenant=tenant)

    _with_gateway(work, home=home, url=url, api_key=api_key)


@keys.command("rotate")
def keys_rotate(
    key_id: str,
    overlap: Annotated[str, typer.Option(help="How long the old secret stays valid: 30m, 24h, 7d.")] = "0",
    home: HomeFolder = _HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Give a key a new secret and print it once."""

    async def work(client: GatewayClient) -> None:
        await key_commands.rotate(client, console, key_id, overlap_s=key_commands.seconds_of(overlap))

    _with_gateway(work, home=home, url=url, api_key=api_key)


@keys.command("revoke")
def keys_revoke(key_id: str, home: HomeFolder = _HOME, url: Url = None, api_key: Key = None) -> None:
    """Revoke a key; takes effect within a second."""

    async def work(client: GatewayClient) -> None:
        await key_commands.revoke(client, console, key_id)

    _with_gateway(work, home=home, url=url, api_key=api_key)


@app.command()
def demo(
    examples: Annotated[Path, typer.Option(help="The folder that holds document.txt and questions.json.")] = Path(
        "examples/long-read"
    ),
    home: HomeFolder = _HOME,
) -> None:
    """Run a chat that remembers and a long read on a temporary stack. Takes a few minutes."""
    with errors_printed():
        asyncio.run(run_demo(Home(home / "demo"), examples, os.environ, console))


def _with_gateway(
    work: Callable[[GatewayClient], Awaitable[None]], *, home: Path, url: str | None, api_key: str | None
) -> None:
    async def run() -> None:
        async with _client(home, url, api_key) as client:
            with gateway_errors(client.url):
                await work(client)

    with errors_printed():
        asyncio.run(run())


def _client(home: Path, url: str | None, api_key: str | None) -> GatewayClient:
    try:
        return GatewayClient(gateway_url(Home(home), url), api_key=api_key, timeouts=_TIMEOUTS)
    except ValueError as error:
        raise CliError(f"{error} (MEMLOOP_URL)", code=2) from error


if __name__ == "__main__":
    sys.exit(app())
