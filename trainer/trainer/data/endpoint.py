"""Command-line options for a model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from memloop.ports import ChatModel
from memloop_clients.endpoints import DIALECT_NAMES
from memloop_clients.engine import EngineClient
from memloop_clients.transport import Timeouts


def add_endpoint_options(add: Callable[..., object], *, flag: str, help_: str) -> None:
    """Add the options that name endpoints; ``flag`` is repeatable."""
    add(flag, dest="models", nargs=2, metavar=("URL", "MODEL"), action="append", required=True, help=help_)
    add("--api-key-variable", help="environment variable that holds the endpoints' key")
    add("--timeout-s", type=float, default=300.0, help="of one call")
    add("--dialect", choices=DIALECT_NAMES, default="auto", help="the kind of endpoint")


@asynccontextmanager
async def models_of(options: argparse.Namespace) -> AsyncGenerator[list[tuple[str, ChatModel]]]:
    """Open the models of the options, each with its name; close their connections on exit."""
    key = os.environ.get(options.api_key_variable) if options.api_key_variable else None
    async with AsyncExitStack() as opened:
        made: list[tuple[str, ChatModel]] = []
        for url, model in options.models:
            client = EngineClient(
                url,
                model=model,
                api_key=key,
                timeouts=Timeouts(read_s=options.timeout_s, total_s=options.timeout_s),
                dialect=options.dialect,
            )
            made.append((model, await opened.enter_async_context(client)))
        yield made
