"""``conformance``: checks that an engine supports what the loops need, and prints a table."""

import argparse
import asyncio
import os
from collections import Counter

from inference.conformance.probe import Probe
from inference.conformance.suite import Row, Verdict, run_checks
from memloop_clients import Dialect, EngineClient
from memloop_clients.endpoints import DIALECT_NAMES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine-url", required=True, help="its OpenAI base URL, which ends in /v1")
    parser.add_argument("--model", required=True)
    parser.add_argument("--api-key-env", default="MEMLOOP_ENGINE_API_KEY", help="the variable that holds its key")
    parser.add_argument("--dialect", choices=DIALECT_NAMES, default="auto", help="the kind of endpoint")
    parser.add_argument("--metrics-url", help="default: /metrics beside /v1; empty for an endpoint without metrics")


def run(arguments: argparse.Namespace) -> int:
    """Print the table; the status is 1 when a row failed."""
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    url: str = arguments.engine_url.rstrip("/")
    given = arguments.metrics_url
    metrics_url = url.removesuffix("/v1") + "/metrics" if given is None else (given or None)
    key = os.environ.get(arguments.api_key_env) or None
    counts = Counter[Verdict]()
    async with EngineClient(url, model=arguments.model, api_key=key, dialect=arguments.dialect) as client:
        async for row in run_checks(Probe(client, arguments.model, metrics_url)):
            print(line(row), flush=True)
            counts[row.verdict] += 1
        print(spoken(await client.dialect(arguments.model)))
    print(f"{counts['passed']} passed, {counts['explained']} explained, {counts['FAILED']} failed")
    return 1 if counts["FAILED"] else 0


def spoken(dialect: Dialect) -> str:
    """Describe the dialect used for the engine, with the changes learned from its refusals."""
    left_out = ", ".join(sorted(dialect.leaves_out)) or "nothing"
    choices = ", ".join(sorted(dialect.tool_choices))
    formats = ", ".join(dialect.formats) or "none"
    return (
        f"dialect {dialect.name}: {dialect.limit_field}; tool_choice {choices}; response_format {formats}; "
        f"left out: {left_out}"
    )


def line(row: Row) -> str:
    return f"{row.verdict:<10}{row.name:<40}{row.seconds:6.2f} s  {row.detail}"
