"""``memloop-evaluate languages``: recall on the same facts in eight languages. The last line is one JSON object."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from evaluation.languages.recall import LANGUAGES, K, recall
from memloop_service import new_registry
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, SentenceEncoder
from memory_store.embedding.sparse import Bm25
from memory_store.metrics import Metrics
from memory_store.retrieval import Tuning
from memory_store.retrieval.tuning import PLAIN

ROWS: Final = {"search": Tuning(), "bm25": replace(PLAIN, dense=0.0), "dense": replace(PLAIN, sparse=0.0)}


def main(arguments: Sequence[str]) -> None:
    """Measure search, words alone and vectors alone; print the table and the last line."""
    options = _parser().parse_args(arguments)
    found = uvloop.run(measured(options.model))
    table = Table("ranking", *LANGUAGES, title=f"recall@{K} in %, {options.model}")
    for name, row in found.items():
        table.add_row(name, *(f"{row[language]:.0f}" for language in LANGUAGES))
    Console(width=140).print(table)
    behind = max(found["search"]["en"] - share for share in found["search"].values())
    verdict = "met" if behind <= 10 else "missed"
    about = {"model": options.model, "points_behind_english": behind, "goals": {"points_behind_english": verdict}}
    print(orjson.dumps({"evaluation": "languages", **found, **about}).decode())


async def measured(model: str) -> dict[str, dict[str, float]]:
    """Return the recall by ranking and language with a sentence-transformers model."""

    def load() -> SentenceEncoder:
        return SentenceEncoder(model, threads=1, batch=32)

    embedder = BatchingEmbedder(load, metrics=Metrics(new_registry()), cached=1000)
    dimension = await embedder.start()
    try:
        return {name: await recall(embedder, dimension, tuning=tuning, bm25=Bm25()) for name, tuning in ROWS.items()}
    finally:
        await embedder.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memloop-evaluate languages", description=__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="sentence-transformers folder or name")
    return parser
