"""``memloop-evaluate memory``: reads a user's files and writes a scorecard; the last line is one JSON object.

An interrupted run resumes when the same command is run again.
"""

import argparse
import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from evaluation.memory.endpoint import Address
from evaluation.memory.forecast import forecast, sentence
from evaluation.memory.gateway_memory import TOP_K, TURN_CHARS, GatewayMemory, Search, Writing
from evaluation.memory.memos import (
    LONGMEMEVAL_TURN_CHARS,
    MEMOS_TOP_K,
    TURNS_PER_WRITE,
    Count,
    Memos,
    cl100k,
    texts_of,
)
from evaluation.memory.options import parsed
from evaluation.memory.point_scores import point_score
from evaluation.memory.records import (
    ENTRIES,
    IN_MEMORY,
    Answered,
    AnyEntry,
    Checked,
    Graded,
    Ingested,
    Recalled,
    key_of,
)
from evaluation.memory.rules import digest_of
from evaluation.memory.run import Judged, Kept, judge_all, recall_all
from evaluation.memory.scorecard import Card, last_line, markdown, save_plot
from evaluation.memory.scores import Prices, recall_score, row_score
from evaluation.memory.stack import Place, embedding_threads, own_stack
from inference.profile_import.sources import ImportRefused
from memloop.wire.errors import MemloopError
from memloop_cli.errors import CliError
from memloop_service import new_registry
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.embedding.port import Encoder
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, SentenceEncoder
from memory_store.metrics import Metrics
from trainer.data.dialogues.dialogue import Conversation
from trainer.data.dialogues.formats import Format, conversations
from trainer.data.journal import Journal
from trainer.data.json_rows import DataError
from trainer.data.retry_policy import RetryPolicy


def _encoder() -> Encoder:
    return SentenceEncoder(DEFAULT_MODEL, threads=embedding_threads(), batch=32)


def main(arguments: Sequence[str]) -> None:
    """Evaluate the named data. Exits with 2 when data or options are invalid, 3 when a server is unavailable."""
    options = parsed(arguments)
    try:
        print(evaluate(options))
    except (DataError, ImportRefused, OSError) as error:
        _give_up(error, 2)
    except MemloopError as error:
        _give_up(f"{error}\n{_RESUME}", 3)
    except CliError as error:
        _give_up(f"{error}\n{error.detail}\n{_RESUME}", 3)


_RESUME = "Run the same command again to resume."


def _give_up(error: object, status: int) -> None:
    print(error, file=sys.stderr)
    sys.exit(status)


def evaluate(
    options: argparse.Namespace, *, load: Callable[[], Encoder] = _encoder, count: Callable[[], Count] = cl100k
) -> str:
    """Run the missing parts; write scorecard and figure, return scorecard and last line. ``load`` builds the encoder,
    ``count`` MemOS's count of tokens.

    Before that, print to standard error what a whole run costs; ``--forecast`` returns that line and runs nothing.
    Raises DataError, and MemloopError or CliError when the gateway is unavailable.
    """
    if options.gateway_url and not options.writer:
        raise DataError("--gateway-url needs --writer NAME: the model that writes its memories, for the record")
    if options.writer_url and (options.gateway_url or not options.writer):
        raise DataError("--writer-url needs --writer NAME, and no --gateway-url: that gateway has a writer")
    if options.without_judge and options.format == "halumem":
        raise DataError("--without-judge: HaluMem's points are graded by a judge alone")
    if options.protocol == "memos" and (options.without_judge or options.in_chats):
        raise DataError("--protocol memos has a judge and prompts of its own: no --without-judge, no --in-chats")
    memos = _memos(options, count)
    captions = memos is None
    talks = partial(conversations, options.data, options.format, limit=options.limit, captions=captions)
    if options.forecast:
        return _forecast(options, talks())
    if options.engine_url:
        print(_forecast(options, talks()), file=sys.stderr)
    chosen = {talk.id for talk in talks()}
    run = _described(options, memos)
    with Journal(options.out / "results.jsonl", run, records=ENTRIES, key_of=key_of) as kept:
        asyncio.run(_recall(_announced(talks(), "retrieval"), load, kept))
        judged = _judged(options, memos)
        if judged is not None:
            asyncio.run(_judge(options, judged, lambda: _announced(talks(), "answers"), kept, run=_digest(run)))
        card = _card(options, run, [entry for entry in kept.records if entry.conversation in chosen])
    (options.out / "scorecard.md").write_text(markdown(card), "utf-8")
    if card.rows:
        save_plot(card, options.out / "scorecard.svg")
    return f"{markdown(card)}\n{last_line(card)}"


def _memos(options: argparse.Namespace, count: Callable[[], Count]) -> Memos | None:
    """Return MemOS's protocol for the format, None for ours. Raises DataError and ImportRefused."""
    if options.protocol == "ours":
        return None
    if options.rows != ("ours",):
        raise DataError("--protocol memos is for the row ours: --rows ours")
    if options.format != "halumem" and options.memos_checkout is None:
        raise DataError("--protocol memos needs --memos-checkout, which holds its prompts")
    return Memos(count(), texts_of(options.memos_checkout, options.format))


def _top_k(options: argparse.Namespace) -> int:
    return options.top_k or (TOP_K if options.protocol == "ours" else MEMOS_TOP_K)


def _announced(talks: Iterator[Conversation], part: str) -> Iterator[Conversation]:
    """Yield the conversations; print each to standard error as it begins, because one may take minutes."""
    for talk in talks:
        print(f"{part}: conversation {talk.id}, {len(talk.questions)} questions", file=sys.stderr)
        yield talk


def _forecast(options: argparse.Namespace, talks: Iterator[Conversation]) -> str:
    expected = forecast(
        talks, options.rows, seeds=len(_seeds(options)), top_k=_top_k(options), judged=not options.without_judge
    )
    return sentence(expected, Prices(options.price_in, options.price_out))


def _described(options: argparse.Namespace, memos: Memos | None) -> dict[str, object]:
    """Return the settings that make two runs comparable: a results file holds records of one description."""
    with options.data.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "format": options.format,
        "data": options.data.name,
        "sha256": digest,
        "model": options.model,
        "judge_model": None if options.without_judge else options.judge_model or options.model,
        "profile": options.profile,
        "top_k": _top_k(options),
        "with_raw": options.with_raw,
        "rules": digest_of(options.format),
        **({"gateway": options.gateway_url} if options.gateway_url else {}),
        **({"writer": options.writer} if options.writer else {}),
        **({"in_chats": True} if options.in_chats else {}),
        **({} if memos is None else {"protocol": "memos", "texts": memos.texts.digest if memos.texts else None}),
    }


def _digest(run: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:12]


async def _recall(talks: Iterator[Conversation], load: Callable[[], Encoder], kept: Kept) -> None:
    embedder = BatchingEmbedder(load, metrics=Metrics(new_registry()))
    dimension = await embedder.start()
    try:
        await recall_all(talks, embedder, dimension=dimension, kept=kept)
    finally:
        await embedder.close()


def _judged(options: argparse.Namespace, memos: Memos | None) -> Judged | None:
    """Return the settings of the judged run; None without a model, which measures retrieval alone."""
    if options.engine_url is None:
        return None
    if options.model is None:
        raise DataError("--engine-url needs --model")
    return Judged(
        format=options.format,
        rows=options.rows,
        model=_address(options, options.engine_url, options.model, options.api_key_variable),
        judge=_address(
            options,
            options.judge_url or options.engine_url,
            options.judge_model or options.model,
            options.judge_api_key_variable or options.api_key_variable,
        ),
        seeds=_seeds(options),
        at_once=options.at_once,
        retries=_retries(options),
        memos=memos,
        exactly=options.without_judge,
        in_chats=options.in_chats,
    )


def _address(options: argparse.Namespace, url: str, model: str, variable: str | None) -> Address:
    return Address(url, model, os.environ.get(variable) if variable else None, options.timeout_s, options.dialect)


def _retries(options: argparse.Namespace) -> RetryPolicy:
    return RetryPolicy(options.attempts, options.pause_s)


async def _judge(
    options: argparse.Namespace, judged: Judged, talks: Callable[[], Iterator[Conversation]], kept: Kept, *, run: str
) -> None:
    async with _memory(options, judged, run) as memory:
        await judge_all(talks, judged, memory, kept)


@asynccontextmanager
async def _memory(options: argparse.Namespace, judged: Judged, run: str) -> AsyncGenerator[GatewayMemory | None]:
    """Open the memory behind a gateway; None if no row needs one."""
    if not judged.in_chats and not set(judged.rows) & set(IN_MEMORY):
        yield None
        return
    search = Search(_top_k(options), options.with_raw)
    async with (
        _gateway(options, judged) as place,
        GatewayMemory(
            place.url,
            api_key=place.api_key,
            run=run,
            search=search,
            model=judged.model.model,
            retries=judged.retries,
            writing=Writing() if judged.memos is None else _as_memos_writes(judged.format),
        ) as memory,
    ):
        yield memory


def _as_memos_writes(format_: Format) -> Writing:
    return Writing(
        turns=TURNS_PER_WRITE[format_],
        turn_chars=LONGMEMEVAL_TURN_CHARS if format_ == "longmemeval" else TURN_CHARS,
        bare=format_ != "locomo",
        both_views=format_ == "locomo",
    )


@asynccontextmanager
async def _gateway(options: argparse.Namespace, judged: Judged) -> AsyncGenerator[Place]:
    """Connect to the user's gateway, or start one with its data in --out."""
    if options.gateway_url:
        variable = options.gateway_key_variable
        yield Place(options.gateway_url, os.environ.get(variable) if variable else None)
        return
    writer = judged.model
    if options.writer_url:
        writer = _address(options, options.writer_url, options.writer, options.writer_key_variable)
    async with own_stack(options.out / "stack", writer, profile=options.profile) as place:
        yield place


def _card(options: argparse.Namespace, run: dict[str, object], entries: Sequence[AnyEntry]) -> Card:
    """Score the requested rows and seeds."""
    prices = Prices(options.price_in, options.price_out)
    seeds = _seeds(options)
    answers = [each for each in entries if isinstance(each, Answered) and each.seed in seeds]
    ingests = [each for each in entries if isinstance(each, Ingested)]
    rows = [
        row_score(row, own, [each for each in ingests if each.row == row], prices)
        for row in options.rows
        if (own := [each for each in answers if each.row == row])
    ]
    return Card(
        run,
        rows,
        recall_score([each for each in entries if isinstance(each, Recalled)]),
        point_score(
            [each for each in entries if isinstance(each, Graded)],
            [each for each in entries if isinstance(each, Checked)],
        ),
    )


def _seeds(options: argparse.Namespace) -> tuple[int, ...]:
    return tuple(dict.fromkeys(options.seed or [0]))
