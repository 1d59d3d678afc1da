"""Reads one document of full length through the whole stack with the tiny model; records correctness and cost."""

import asyncio
import datetime as dt
import random
import tempfile
from pathlib import Path
from typing import Final

import orjson

from benchmarks.kept import FOLDER, machine
from benchmarks.long_read.reads import client_of, finished, request, uploaded
from benchmarks.long_read.stack import TOKENIZER, Stack, running_stack
from benchmarks.tiny_engine import MODEL
from memloop.chunking import TokenizerSplitter
from memloop.profiles import load_profile
from memloop_clients import GatewayClient
from trainer.tiny.documents import Document, random_document

TOKENS: Final = 3_500_000
_SECTION_TOKENS: Final = 228
"""The minimum mean tokens of a section in a planted document."""
KEPT: Final = FOLDER / "long_read_full_length.json"


def planted(tokens: int, *, seed: int) -> Document:
    """Build a document of at least ``tokens`` tokens whose answer no chunk boundary cuts."""
    splitter, chunk_tokens = TokenizerSplitter(TOKENIZER.read_bytes()), load_profile("tiny").budget.chunk_tokens
    while True:
        made = random_document(
            random.Random(seed),
            chunks=2 + tokens // _SECTION_TOKENS,
            chunk_tokens=chunk_tokens,
            hops=1,
            distractors_per_chunk=0.0,
        )
        text = "".join(chunk.text for chunk in made.chunks)
        chunks = splitter.split(text, chunk_tokens=chunk_tokens)
        if any(made.answer in chunk.text for chunk in chunks):
            return Document(made.question, made.answer, chunks)
        seed += 1


async def measured(engine_url: str, *, tokens: int, seed: int) -> dict[str, object]:
    """Upload the document, read it, and return the measurements."""
    made = await asyncio.to_thread(planted, tokens, seed=seed)
    with tempfile.TemporaryDirectory() as folder, running_stack(engine_url, model=MODEL, profile="tiny") as stack:
        path = Path(folder) / "document.txt"
        path.write_text("".join(chunk.text for chunk in made.chunks))
        async with client_of(stack.url) as client:
            return await _read(client, stack, path, made)


async def _read(client: GatewayClient, stack: Stack, path: Path, made: Document) -> dict[str, object]:
    file_id = await uploaded(client, path)
    before = stack.cpu_s
    asked = request(file_id, question=made.question, model=MODEL)
    done = await finished(client, await client.queue_read(asked))
    spent = {name: stack.cpu_s[name] - before[name] for name in before}
    peak = stack.peak_mb
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": machine(),
        "document_tokens": sum(made.chunks.span(index).tokens for index in range(len(made.chunks))),
        "document_chars": made.chunks[-1].end,
        "chunks": done.chunks,
        "status": done.read.status,
        "question": made.question,
        "answer": done.read.output_text,
        "wanted": made.answer,
        "right": done.read.output_text == made.answer,
        "seconds": round(done.seconds, 1),
        "peak_mb": {name: round(value, 1) for name, value in peak.items()},
        "peak_mb_total": round(sum(peak.values()), 1),
        "cpu_ms_per_chunk": round(1000 * spent["worker"] / max(1, done.chunks), 2),
    }


def keep(found: dict[str, object]) -> None:
    """Write the result."""
    FOLDER.mkdir(exist_ok=True)
    KEPT.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def kept() -> dict[str, object]:
    """Return the kept result; empty if there is none."""
    return orjson.loads(KEPT.read_bytes()) if KEPT.exists() else {}
