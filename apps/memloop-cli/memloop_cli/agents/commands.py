"""``memloop connect``, and the commands that the hooks of agents run."""

import getpass
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memloop_cli.agents.connections import AgentName, Connection, edits_for
from memloop_cli.agents.edits import Edit
from memloop_cli.agents.sessions import Session, recalled, session_of, stored
from memloop_cli.errors import errors_printed
from memloop_cli.home import Home, gateway_url
from memloop_cli.options import HOME, HomeFolder, Key, Url, with_gateway
from memloop_clients import GatewayClient, Timeouts

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_TIMEOUTS = Timeouts(connect_s=5.0, read_s=20.0, total_s=25.0)
"""Below the hooks' own limit."""

agent = typer.Typer(no_args_is_help=True, help="What the hooks of coding agents run.")
User = Annotated[str, typer.Option("--user", help="Whose memory it is; default: the name of this account.")]


def connect(
    name: Annotated[AgentName, typer.Argument(metavar="AGENT", help="claude-code, codex or cursor.")],
    user: User = "",
    model: Annotated[str | None, typer.Option(help="Answer with this model of the gateway.")] = None,
    project: Annotated[bool, typer.Option("--project", help="For the repository of this folder alone.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take out what an earlier call has written.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Give a coding agent memory: shows the change of its configuration, then writes it.

    With --model its requests go to the gateway, which remembers. Without, it keeps its model, and hooks (Cursor: MCP
    tools) recall at the beginning of a session and store at its end.
    """
    console = Console(highlight=False, soft_wrap=True)
    with errors_printed():
        address = gateway_url(Home(home), url).rstrip("/")
        folder = Path.cwd() if project else None
        asked = Connection(address, user or getpass.getuser(), api_key or None, model, folder)
        edits = [edit for edit in edits_for(name, asked, remove=remove) if edit.changes]
        _show(edits, console, secret=api_key or "")
        if edits and not dry_run and (yes or typer.confirm("Write this?")):
            _write(edits, console)


def _show(edits: Sequence[Edit], console: Console, *, secret: str) -> None:
    shown = [edit for edit in edits if not edit.path.name.endswith(".memloop")]
    for edit in shown:
        for line in edit.diff():
            hidden = line.replace(json.dumps(secret), '"…"') if secret else line
            console.print(Text(hidden, style=_STYLES.get(line[:1], "")))
    if not edits:
        console.print("nothing to change")


def _write(edits: Sequence[Edit], console: Console) -> None:
    for edit in edits:
        backup = edit.apply()
        if backup is not None:
            console.print(Text(f"the file as it was: {backup}", style="dim"))
    console.print("done")


async def _recall(client: GatewayClient, session: Session, user: str, name: AgentName) -> None:
    """Print the memories of the user and the repository, for the model."""
    del name
    text = await recalled(client, session, user=user)
    if text:
        typer.echo(text)


async def _store(client: GatewayClient, session: Session, user: str, name: AgentName) -> None:
    """Queue the turns of the session that are not stored yet."""
    await stored(client, session, user=user, notes=Path.home() / ".memloop" / "agents" / name)


def _hook(command: str, work: Callable[[GatewayClient, Session, str, AgentName], Awaitable[None]]) -> None:
    """Add a command that does the work on the session which the agent describes on standard input."""

    def run(
        name: Annotated[AgentName, typer.Option("--agent")],
        user: User = "",
        home: HomeFolder = HOME,
        url: Url = None,
        api_key: Key = None,
    ) -> None:
        async def on_session(client: GatewayClient) -> None:
            await work(client, session_of(sys.stdin.read()), user or getpass.getuser(), name)

        with_gateway(on_session, home=home, url=url, api_key=api_key, timeouts=_TIMEOUTS)

    agent.command(command, help=work.__doc__)(run)


_hook("recall", _recall)
_hook("store", _store)
