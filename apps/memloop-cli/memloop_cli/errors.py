"""Errors of the command line: one clear line and an exit code."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import typer
from rich.console import Console
from rich.text import Text

from memloop.wire.errors import MemloopError, NotFound, Unreachable

_INTERRUPTED: Final = 130


class CliError(Exception):
    """An error printed as one line, with ``detail`` (last log lines) below it.

    ``code`` is 2 for invalid input and 1 for a command that failed.
    """

    def __init__(self, message: str, *, code: int = 1, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.detail = detail


class BadInput(CliError):
    """The user's input is invalid."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=2)


@contextmanager
def gateway_errors(url: str) -> Generator[None]:
    """Turn a failed call of the gateway at the URL into a CliError; its code is 2 when the request was at fault."""
    try:
        yield
    except Unreachable as error:
        if url.startswith("https:"):  # its message names the fault of the certificate
            raise CliError(error.message) from error
        raise CliError(f"no gateway answers at {url}: start one with `memloop up`, or set MEMLOOP_URL") from error
    except MemloopError as error:
        field = f" ({error.param})" if error.param and not error.message.startswith(error.param) else ""
        code = 2 if 400 <= error.http_status < 500 else 1
        raise CliError(f"{error.message}{field}", code=code) from error


@contextmanager
def named_if_missing(name: str) -> Generator[None]:
    """Add the name to the error of a thing that the gateway does not find."""
    try:
        yield
    except NotFound as error:
        raise BadInput(f"{error.message}: {name}") from error


def _print(message: str, detail: str = "") -> None:
    stderr = Console(stderr=True, highlight=False, soft_wrap=True)
    stderr.print(Text(f"memloop: {message}", style="red"))
    if detail:
        stderr.print(Text(detail))


@contextmanager
def errors_printed() -> Generator[None]:
    """Print the error in one line and exit with its code."""
    try:
        yield
    except CliError as error:
        _print(error.message, error.detail)
        raise typer.Exit(error.code) from None
    except BrokenPipeError:  # the reader of our output has gone, which Click takes care of
        raise
    except OSError as error:
        at = f"{error.filename}: " if error.filename else ""
        _print(f"{at}{error.strerror or error}")
        raise typer.Exit(1) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(_INTERRUPTED) from None
