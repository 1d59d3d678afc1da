"""Reads at an endpoint of OpenAI's API, without a running stack, by the loop that the gateway runs."""

import asyncio
import os
import time
from dataclasses import dataclass

import typer
from pydantic import TypeAdapter
from rich.text import Text

from memloop.loops.results import ReadResult
from memloop.profiles import ProfileError
from memloop.wire.errors import MemloopError
from memloop.wire.long_read import LongReadRequest
from memloop_cli.errors import BadInput, gateway_errors
from memloop_cli.options import console
from memloop_clients.memreread import MemReread


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint, and what it lacks: the model's tokenizer and its prompts."""

    base_url: str
    model: str
    api_key: str | None
    tokenizer_model: str | None
    profile: str


def endpoint_of(
    base_url: str | None,
    model: str | None,
    api_key: str | None,
    *,
    tokenizer_model: str | None,
    profile: str | None,
    gateways: bool,
    from_env: bool,
) -> Endpoint | None:
    """Return the endpoint that a command line names, if any. ``gateways``: it has an option that needs the gateway.

    ``from_env`` takes URL and API_KEY of the environment. Raises BadInput for options that do not go together.
    """
    if from_env:
        if base_url is not None or not os.environ.get("URL"):
            raise BadInput("--from-env takes URL and API_KEY of the environment, in the place of --base-url")
        base_url, api_key = os.environ["URL"], os.environ.get("API_KEY") or api_key
    if base_url is None:
        if tokenizer_model is not None or profile is not None:
            raise BadInput("--tokenizer-model and --profile are for --base-url: the gateway has its own")
        return None
    if gateways:
        raise BadInput("--base-url takes no --questions, --evidence, --budget, --estimate, --background or --resume")
    if model is None:
        raise BadInput("--base-url needs --model, the id that the endpoint serves")
    return Endpoint(base_url, model, api_key, tokenizer_model, profile or "default")


def read_at(endpoint: Endpoint, asked: LongReadRequest, document: str | None, *, as_json: bool) -> None:
    """Read the document and print the answer. Raises BadInput, and CliError for a failed call."""
    if document is None or asked.question is None:
        raise BadInput("--base-url reads one plain text of at most 4,000,000 characters: files need the gateway")
    try:
        reader = MemReread(
            model=endpoint.model,
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            tokenizer_model=endpoint.tokenizer_model,
            max_reread=asked.max_rereads if asked.strategy == "memreread" else 0,
            max_chunk=asked.chunk_tokens,
            profile=endpoint.profile,
        )
    except (ProfileError, ValueError, MemloopError) as error:
        raise BadInput(str(error)) from error
    began = time.monotonic()
    with gateway_errors(endpoint.base_url):
        result = asyncio.run(_read(reader, asked.question, document))
    _show(result, seconds=time.monotonic() - began, as_json=as_json)


async def _read(reader: MemReread, question: str, document: str) -> ReadResult:
    async with reader:
        return await reader(question, document)


def _show(result: ReadResult, *, seconds: float, as_json: bool) -> None:
    if as_json:
        typer.echo(TypeAdapter(ReadResult).dump_json(result))
        return
    for sub in result.subquestions:
        console.print(
            Text.assemble(("reread  ", "cyan"), sub.question, (" → ", "dim"), sub.answer or "(nothing found)")
        )
    console.print(Text.assemble(("answer  ", "bold green"), (result.answer or "(the model gave no answer)", "bold")))
    usage = result.usage
    console.print(f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {seconds:.1f} s", style="dim")
