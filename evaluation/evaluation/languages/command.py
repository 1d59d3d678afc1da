"""``memloop-evaluate languages``: recall on the same facts in eight languages. The last line is one JSON object."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from evaluation.languages.recall import KINDS, LANGUAGES, K, Kind, recall
from memloop_service import new_registry
from memory_store.embedding.encoding import Bm25
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL
from memory_store.metrics import Metrics
from memory_store.models.chosen import embedder_of
from memory_store.retrieval.relevance import PLAIN, Tuning
from memory_store.settings import Settings

ROWS: Final = {"search": Tuning(), "bm25": replace(PLAIN, dense=0.0), "dense": replace(PLAIN, sparse=0.0)}


def main(arguments: Sequence[str]) -> None:
    """Measure search, words alone and vectors alone; print the table and the last line."""
    options = _parser().parse_args(arguments)
    found = uvloop.run(measured(options.model))
    table = Table("questions", "ranking", *LANGUAGES, title=f"recall@{K} in %, {options.model}")
    for kind in KINDS:
        for name, row in found.items():
            table.add_row(kind, name, *(f"{row[kind][language]:.0f}" for language in LANGUAGES))
    Console(width=140).print(table)
    behind = {kind: points_behind_english(found["search"][kind]) for kind in KINDS}
    verdict = "met" if max(behind.values()) <= 10 else "missed"
    about = {"model": options.model, "points_behind_english": behind, "goals": {"points_behind_english": verdict}}
    print(orjson.dumps({"evaluation": "languages", **found, **about}).decode())


def points_behind_english(row: Mapping[str, float]) -> float:
    """Return how far the worst language is behind English, in points."""
    return max(row["en"] - share for share in row.values())


async def measured(model: str) -> dict[str, dict[Kind, dict[str, float]]]:
    """Return the recall by ranking, kind of question and language with a model as the store loads it.

    The store's own settings apply, such as ``MEMLOOP_EMBEDDING_URL``.
    """
    embedder = embedder_of(Settings(), Metrics(new_registry()), model)
    dimension = await embedder.start()
    try:
        return {name: await recall(embedder, dimension, tuning=tuning, bm25=Bm25()) for name, tuning in ROWS.items()}
    finally:
        await embedder.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memloop-evaluate languages", description=__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="sentence-transformers folder or name, or endpoint:NAME")
    return parser
