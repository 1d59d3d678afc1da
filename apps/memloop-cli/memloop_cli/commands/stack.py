"""``memloop status`` and ``memloop logs``: what a local stack or a gateway is doing."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.console import Console
from rich.text import Text

from memloop_cli.errors import BadInput, CliError, errors_printed
from memloop_cli.home import Home
from memloop_cli.options import HOME, HomeFolder, Key, Url, console, with_gateway
from memloop_clients import GatewayClient

_POLL_S = 0.2


def status(home: HomeFolder = HOME, url: Url = None, api_key: Key = None) -> None:
    """Print whether the stack runs, its address and its models. Exits with 1 if no gateway answers."""
    note = Home(home).running()
    if url is None:
        where = "no stack runs here" if note is None else f"the stack is {note.status}, pid {note.pid}"
        console.print(Text(f"{where} ({Home(home).folder})"))

    async def work(client: GatewayClient) -> None:
        models = await client.models()
        console.print(Text.assemble(("gateway  ", "bold green"), client.url))
        console.print(Text(f"models   {', '.join(models) or 'none'}"))

    with_gateway(work, home=home, url=url, api_key=api_key)


def logs(
    components: Annotated[list[str] | None, typer.Argument(metavar="[COMPONENT...]", help="Default: all.")] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=100_000, help="Last lines of each.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines; Ctrl-C ends it.")] = False,
    home: HomeFolder = HOME,
) -> None:
    """Print the logs of the local stack."""
    with errors_printed():
        files = _files(Home(home).logs, components or [])
        opened = {path.stem: path.open(encoding="utf-8", errors="replace") for path in files}
        named = len(opened) > 1
        for name, file in opened.items():
            for line in deque(file, maxlen=lines):
                _print(console, name, line, named=named)
        while follow:
            for name, line in _new(opened):
                _print(console, name, line, named=named)
            time.sleep(_POLL_S)


def _files(folder: Path, components: Sequence[str]) -> list[Path]:
    there = {path.stem: path for path in sorted(folder.glob("*.log"))}
    if not there:
        raise CliError(f"there are no logs in {folder}: `memloop up` writes them")
    unknown = [name for name in components if name not in there]
    if unknown:
        raise BadInput(f"there is no log of {unknown[0]}; there are {', '.join(there)}")
    return [there[name] for name in components or there]


def _new(opened: Mapping[str, IO[str]]) -> Iterator[tuple[str, str]]:
    for name, file in opened.items():
        while line := file.readline():
            yield name, line


def _print(out: Console, name: str, line: str, *, named: bool) -> None:
    text = Text(line.rstrip("\n"))
    out.print(Text.assemble((f"{name:<12} ", "cyan"), text) if named else text)
