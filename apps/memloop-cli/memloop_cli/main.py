"""``memloop``: the local stack and the user's command line. Run ``memloop --help``.

Exit codes: 0 done, 1 failed, 2 invalid input, 130 interrupted.
"""

import asyncio
import os
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from memloop.wire.chat import Json
from memloop_cli.agents.commands import agent, connect
from memloop_cli.commands import keys, memory
from memloop_cli.commands.chat import Conversation, converse, first_model
from memloop_cli.commands.stack import logs, status
from memloop_cli.demo.run import run_demo
from memloop_cli.errors import errors_printed, gateway_errors
from memloop_cli.home import Home
from memloop_cli.importing.command import import_memories
from memloop_cli.options import HOME, HomeFolder, Key, Url, User, client_of, console
from memloop_cli.reading.command import read
from memloop_cli.stack.given_engine import ENGINE_API_KEY, ENGINE_URL, MODEL, GivenEngine, check_engine
from memloop_cli.stack.local import ports_from
from memloop_cli.stack.up import down as stop_stack
from memloop_cli.stack.up import stay_up, up_detached

_HELP = "The local stack and the command line of Memloop."
_LAST_BASE_PORT = 65_530

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=_HELP)
app.add_typer(memory.app, name="memory")
app.add_typer(keys.app, name="keys")
app.add_typer(agent, name="agent", hidden=True)
app.command()(connect)
app.command()(read)
app.command("import")(import_memories)
app.command()(status)
app.command()(logs)

Model = Annotated[str | None, typer.Option("--model", help="A served model's id; default: the first.")]
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
    home: HomeFolder = HOME,
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
        from memloop_cli.stack.variables import misspelt  # no other command loads the services' settings

        for sentence in misspelt(environment):
            console.print(Text(sentence, style="yellow"))
        ports = ports_from(port, environment)
        if check:
            asyncio.run(check_engine(environment))
        if detach:
            up_detached(Home(home), ports, environment, console)
        else:
            asyncio.run(stay_up(Home(home), ports, environment, console))


@app.command()
def down(home: HomeFolder = HOME) -> None:
    """Stop the local stack."""
    with errors_printed():
        stop_stack(Home(home), console)


@app.command()
def chat(
    user: User = "me",
    model: Model = None,
    thinking: Annotated[bool | None, typer.Option("--thinking/--no-thinking", help="Default: the model's own.")] = None,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Chat with a model that remembers; prints the memories that it recalls and stores."""
    more: Json = {} if thinking is None else {"chat_template_kwargs": {"enable_thinking": thinking}}
    with errors_printed(), asyncio.Runner() as runner:
        client = client_of(home, url, api_key)
        try:
            with gateway_errors(client.url):
                served = model or runner.run(first_model(client))
            converse(Conversation(client, console, user_id=user, model=served, more=more), runner, console)
        finally:
            runner.run(client.close())


@app.command()
def demo(
    examples: Annotated[
        Path | None,
        typer.Option(help="The folder that holds document.txt and questions.json; default: the served model's."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Ask all questions with both strategies: minutes.")] = False,
    home: HomeFolder = HOME,
) -> None:
    """Run chats that remember and a long read on a temporary stack, and print the score. Takes a minute or two."""
    with errors_printed():
        asyncio.run(run_demo(Home(home / "demo"), examples, os.environ, console, full=full))
