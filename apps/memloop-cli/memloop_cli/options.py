"""The options that commands share, and the client that they make."""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Concatenate, Final, ParamSpec

import typer
from rich.console import Console

from memloop_cli.errors import CliError, errors_printed, gateway_errors
from memloop_cli.home import Home, gateway_url
from memloop_cli.tls import connects_by
from memloop_clients import GatewayClient, Timeouts

TIMEOUTS: Final = Timeouts(connect_s=5.0, read_s=600.0, total_s=600.0)
HOME: Final = Path(".memloop")

HomeFolder = Annotated[Path, typer.Option("--home", envvar="MEMLOOP_HOME", help="The stack's folder: data and logs.")]
Url = Annotated[str | None, typer.Option("--url", envvar="MEMLOOP_URL", help="The gateway; default: the local stack.")]
Key = Annotated[str | None, typer.Option("--api-key", envvar="MEMLOOP_API_KEY", help="The gateway's API key.")]
User = Annotated[str, typer.Option("--user", help="The user whose memory is used.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Only this agent's memory.")]
Run = Annotated[str | None, typer.Option("--run", help="Only this run's memory.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_Options = ParamSpec("_Options")

console = Console(highlight=False, soft_wrap=True)
"""Colours are off where the output is no terminal, and with NO_COLOR."""


def with_gateway(
    work: Callable[[GatewayClient], Awaitable[None]],
    *,
    home: Path,
    url: str | None,
    api_key: str | None,
    timeouts: Timeouts = TIMEOUTS,
) -> None:
    """Run the work with a client of the gateway. Errors are printed in one line and end the process."""

    async def run() -> None:
        async with client_of(home, url, api_key, timeouts=timeouts) as client:
            with gateway_errors(client.url):
                await work(client)

    with errors_printed():
        asyncio.run(run())


def through_gateway(command: Callable[Concatenate[GatewayClient, _Options], Awaitable[None]]) -> Callable[..., None]:
    """Make a command of a function with a client: it gets the options of the gateway and the stack's folder."""

    @wraps(command)
    def run(*, home: Path, url: str | None, api_key: str | None, **options: object) -> None:
        with_gateway(partial(command, **options), home=home, url=url, api_key=api_key)

    own = [*inspect.signature(command).parameters.values()][1:]
    parameters = [*own, *_GATEWAY_OPTIONS]
    run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _gateway_options(home: HomeFolder = HOME, url: Url = None, api_key: Key = None) -> None: ...


_GATEWAY_OPTIONS: Final = [*inspect.signature(_gateway_options).parameters.values()]


def client_of(home: Path, url: str | None, api_key: str | None, *, timeouts: Timeouts = TIMEOUTS) -> GatewayClient:
    """Return a client. Raises CliError for a URL that is none."""
    try:
        return GatewayClient(
            gateway_url(Home(home), url), api_key=api_key, timeouts=timeouts, tls=connects_by(os.environ)
        )
    except ValueError as error:
        raise CliError(f"{error} (MEMLOOP_URL)", code=2) from error
