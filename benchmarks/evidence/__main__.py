"""Measures precision and recall of ``similar`` on made-up pairs. Run: ``make bench-evidence``.

Each of 40 facts has a passage and five statements: a paraphrase, and the same with another name, another number, a
negation, or another thing said of the same names and numbers. All 40 passages are one document. The threshold is
chosen on every second fact; ``held_out`` are the figures of the others. The last line is one JSON object.
"""

import asyncio
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
from rich.console import Console
from rich.table import Table

from memloop.evidence import Finding, Similarity, with_similar
from memloop.evidence.similar import AT_LEAST
from memloop.ports import Chunk, HeldChunks
from memloop.wire.store_requests import MOST_STATEMENTS
from memory_store.embedding.port import Encoder
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL
from memory_store.models.chosen import encoder_of
from memory_store.settings import Settings

FACTS: Final = Path(__file__).with_name("facts.tsv")
PARAPHRASE: Final = "paraphrase"
THRESHOLDS: Final = (0.60, 0.68, 0.72, AT_LEAST, 0.80, 0.84, 0.88, 0.92)
KINDS: Final = (PARAPHRASE, "name", "number", "negated", "other")


@dataclass(frozen=True, slots=True)
class Pair:
    """A statement, the passage that it was made of, and its kind."""

    passage: str
    statement: str
    kind: str


def pairs() -> list[Pair]:
    """Read the set."""
    with FACTS.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [pair for row in rows for pair in _pairs_of(row)]


def _pairs_of(row: Mapping[str, str]) -> Iterator[Pair]:
    passage, paraphrase = row["passage"], row[PARAPHRASE]
    yield Pair(passage, paraphrase, PARAPHRASE)
    for kind in ("name", "number"):
        right, _, wrong = row[kind].partition(">")
        yield Pair(passage, paraphrase.replace(right, wrong), kind)
    for kind in ("negated", "other"):
        yield Pair(passage, row[kind], kind)


def similarity_by(encoder: Encoder) -> Similarity:
    """Return the similarity of an embedding model in this process."""

    async def cosines(pairs: Sequence[tuple[str, Sequence[str]]]) -> Sequence[Sequence[float]]:
        return [_cosines(*encoder.encode([statement, *passages])) for statement, passages in pairs]

    return cosines


def _cosines(statement: Sequence[float], *passages: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(statement, passage, strict=True)) for passage in passages]


async def found(pairs: Sequence[Pair], similarity: Similarity) -> list[tuple[Pair, Finding]]:
    """Return the nearest sentence of every statement, however far it is."""
    text = " ".join(dict.fromkeys(pair.passage for pair in pairs))
    chunks = HeldChunks([Chunk(0, 0, len(text), text, 1)])
    findings: list[Finding] = []
    for start in range(0, len(pairs), MOST_STATEMENTS):
        some = [Finding(pair.statement, "memory", ()) for pair in pairs[start : start + MOST_STATEMENTS]]
        findings += await with_similar(some, chunks, similarity, at_least=-1.0)
    return list(zip(pairs, findings, strict=True))


def figures(results: Sequence[tuple[Pair, Finding]], at_least: float) -> dict[str, float]:
    """Return how many statements of each kind are called similar, with precision and recall.

    A paraphrase is right if its own passage is found. ``precision`` leaves out statements that say another thing of the
    same names and numbers, which no cosine tells apart; ``precision_all`` has them.
    """
    shown = [
        (pair, finding.similar)
        for pair, finding in results
        if finding.similar is not None and finding.similar.similarity >= at_least
    ]
    counts = {kind: sum(pair.kind == kind for pair, _ in shown) for kind in KINDS}
    right = sum(pair.kind == PARAPHRASE and found.span.text == pair.passage for pair, found in shown)
    all_right = sum(pair.kind == PARAPHRASE for pair, _ in results)
    return {
        "at_least": at_least,
        **counts,
        "precision": round(right / max(1, len(shown) - counts["other"]), 3),
        "precision_all": round(right / max(1, len(shown)), 3),
        "recall": round(right / all_right, 3),
    }


def halves(results: Sequence[tuple[Pair, Finding]]) -> tuple[list[tuple[Pair, Finding]], list[tuple[Pair, Finding]]]:
    """Return the results of every second fact, and those of the others."""
    places = {passage: place for place, passage in enumerate(dict.fromkeys(pair.passage for pair, _ in results))}
    chosen_on = [result for result in results if places[result[0].passage] % 2 == 0]
    return chosen_on, [result for result in results if places[result[0].passage] % 2]


def best(results: Sequence[tuple[Pair, Finding]]) -> float:
    """Return the threshold with the best precision but for ``other``, and of those the one with the best recall."""
    rows = [figures(results, at_least) for at_least in THRESHOLDS]
    return max(rows, key=lambda row: (row["precision"], row["recall"], row["at_least"]))["at_least"]


def main() -> None:
    """Load the store's default model, measure, print."""
    given = pairs()
    encoder = encoder_of(Settings(), DEFAULT_MODEL)
    results = asyncio.run(found(given, similarity_by(encoder)))
    rows = [figures(results, at_least) for at_least in THRESHOLDS]
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(f"{value:g}" for value in row.values()))
    Console(width=120).print(table)
    chosen_on, held_out = halves(results)
    line = {
        "benchmark": "evidence_similar",
        "pairs": len(given),
        "in_force": figures(results, AT_LEAST),
        "chosen": best(chosen_on),
        "held_out": figures(held_out, AT_LEAST),
    }
    print(orjson.dumps(line).decode())


if __name__ == "__main__":
    main()
