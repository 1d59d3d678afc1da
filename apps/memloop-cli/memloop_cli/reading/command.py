"""``memloop read``."""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memloop.wire.long_read import Document, LongRead, LongReadRequest, ReadEvent, Strategy
from memloop_cli.errors import BadInput, errors_printed
from memloop_cli.options import HOME, AsJson, HomeFolder, Key, Url, console, with_gateway
from memloop_cli.reading.asking import budget_of, question_text, questions_in
from memloop_cli.reading.at_endpoint import endpoint_of, read_at
from memloop_cli.reading.following import followed, named_read
from memloop_cli.reading.showing import LiveRead, check_whole, read_to_end, show_estimate, show_result
from memloop_cli.reading.sources import Found, found, inline_text
from memloop_cli.reading.uploads import UploadNotes, uploaded
from memloop_clients import GatewayClient

_stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def read(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DOCUMENT... QUESTION",
            help="Files, folders, patterns, URLs, or - for standard input; at last the question.",
        ),
    ] = None,
    questions: Annotated[
        Path | None, typer.Option("--questions", help="A file of questions, one a line, in the place of QUESTION.")
    ] = None,
    strategy: Annotated[Strategy, typer.Option(help="memreread rereads for missing facts.")] = "memagent",
    max_rereads: Annotated[int, typer.Option("--max-rereads", "--max-reread", min=0, max=16)] = 2,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A served model's id; default: the reader.")
    ] = None,
    chunk_tokens: Annotated[int | None, typer.Option(min=16, max=1_000_000, help="Default: the model's own.")] = None,
    evidence: Annotated[bool, typer.Option("--evidence", help="Print the places that support each statement.")] = False,
    budget: Annotated[str | None, typer.Option(help="End after so many calls (300) or so long (10m).")] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Print the most that it can cost, and stop.")] = False,
    background: Annotated[bool, typer.Option("--background", help="Queue the read, print its id, and stop.")] = False,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="ID", help="Go on with a queued read; `last` is the newest.")
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", help="Read at this endpoint, without a stack; --api-key and --model are then its."),
    ] = None,
    from_env: Annotated[
        bool, typer.Option("--from-env", help="--base-url and --api-key are URL and API_KEY of the environment.")
    ] = False,
    tokenizer_model: Annotated[
        str | None, typer.Option("--tokenizer-model", help="With --base-url: hub id, or folder with tokenizer.json.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="With --base-url: the prompts, by name or folder.")
    ] = None,
    as_json: AsJson = False,
    home: HomeFolder = HOME,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Read documents of any length and answer a question about them.

    A single text is read while you wait. Other documents are uploaded and read by the gateway's workers: if this
    command is killed, the read goes on, and --resume shows its end.
    """
    with errors_printed():
        names, question = _split(names or [], questions, resumes=resume is not None)
        asked = None
        endpoint = endpoint_of(
            base_url,
            model,
            api_key,
            tokenizer_model=tokenizer_model,
            profile=profile,
            gateways=any((questions, evidence, budget, estimate, background, resume)),
            from_env=from_env,
        )
        if resume is None:
            calls, seconds = budget_of(budget)
            asked = LongReadRequest(
                question=question,
                questions=None if questions is None else questions_in(questions),
                document=Document(text="."),  # until it is read or uploaded
                strategy=strategy,
                max_rereads=max_rereads,
                model=model,
                evidence=evidence,
                chunk_tokens=chunk_tokens,
                max_llm_calls=calls,
                deadline_s=seconds,
            )
        documents = Found(()) if resume is not None else found(names)
        inline = _inline(documents, queued=background)
        if endpoint is not None and asked is not None:
            read_at(endpoint, asked, inline, as_json=as_json)
            return

    async def work(client: GatewayClient) -> None:
        said = _stderr if as_json else console
        began = time.monotonic()
        if asked is None:
            done = await _follow(client, await named_read(client, resume or "last"), said, quiet=as_json)
        else:
            request = await _request(client, asked, documents, inline, said, home)
            show_estimate(await client.estimate(request), said)
            if estimate:
                return
            if not request.background:
                with _watched(said, quiet=as_json) as watcher:
                    done = await read_to_end(client, request, watcher)
            else:
                read_id = await client.queue_read(request)
                if background:
                    typer.echo(read_id)
                    return
                said.print(Text(f"read {read_id}; if this is stopped: memloop read --resume {read_id}", style="dim"))
                done = await _follow(client, read_id, said, quiet=as_json)
        _show(done, as_json=as_json, seconds=time.monotonic() - began)

    with_gateway(work, home=home, url=url, api_key=api_key)


def _split(names: list[str], questions: Path | None, *, resumes: bool) -> tuple[list[str], str | None]:
    """Split the arguments into documents and the question; a read that is resumed has both. Raises BadInput."""
    if resumes:
        if names or questions:
            raise BadInput("--resume takes an id and nothing else: the read has its documents and its question")
        return [], None
    if questions is not None:
        if not names:
            raise BadInput("name a document to read")
        return names, None
    if len(names) < 2:
        raise BadInput("name a document, and at last the question (or --questions FILE)")
    return names[:-1], question_text(names[-1])


def _inline(documents: Found, *, queued: bool) -> str | None:
    """Return the document's text if it goes with the request: a single plain text for which the client waits."""
    if len(documents.sources) != 1 or queued:
        return None
    return inline_text(documents.sources[0])


async def _request(
    client: GatewayClient, asked: LongReadRequest, documents: Found, inline: str | None, said: Console, home: Path
) -> LongReadRequest:
    """Return the request with its document: the inline text, or the uploaded files in the background."""
    if inline is not None:
        return asked.model_copy(update={"document": Document(text=inline)})
    for line in documents.left_out:
        said.print(Text(f"left out  {line}", style="yellow"))
    notes = UploadNotes(home / "uploads.json")
    files = await uploaded(client, documents.sources, notes, said)
    said.print(Text(f"{len(files)} documents, {sum(file.bytes for file in files):,} bytes", style="dim"))
    ids = tuple(file.id for file in files)
    document = Document(file_id=ids[0]) if len(ids) == 1 else Document(file_ids=ids)
    return asked.model_copy(update={"document": document, "background": True})


async def _follow(client: GatewayClient, read_id: str, said: Console, *, quiet: bool) -> LongRead:
    with _watched(said, quiet=quiet) as watcher:
        return await followed(client, read_id, watcher)


def _watched(said: Console, *, quiet: bool) -> "LiveRead | nullcontext[_Unseen]":
    """Return what shows the progress: nothing, for a program."""
    return nullcontext(_Unseen()) if quiet and not said.is_terminal else LiveRead(said)


class _Unseen:
    def see(self, event: ReadEvent) -> None:
        """Show nothing."""


def _show(done: LongRead, *, as_json: bool, seconds: float) -> None:
    if not as_json:
        show_result(done, console, seconds=seconds)
        return
    typer.echo(done.model_dump_json(exclude_none=True))
    check_whole(done)
