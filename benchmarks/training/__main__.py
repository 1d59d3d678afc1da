"""``python -m benchmarks.training``: measures whether GRPO raises held-out answers, and at which document lengths.

The tiny model is trained under supervision for two minutes, then by GRPO on verl with the served loop; both policies
read held-out documents at multiples of the training length. The last line is one JSON object; ``--keep`` writes the
result and the plots, which later runs name as ``kept``. Needs the trainer's environment (``make setup-trainer``).
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import orjson

from benchmarks.comparing import Gain, Share, drop, paired_gain
from benchmarks.kept import show
from benchmarks.training import policies, results
from benchmarks.training.plot import save_curves, save_lengths
from benchmarks.training.reading import Reading, Scores, read_or_recall
from benchmarks.training.results import Curve, Found, Row
from memloop.profiles import load_profile
from trainer.tiny.documents import TRAINED_CHUNKS

BEFORE, AFTER = "before", "after"
_MOST, _FEWEST = 256, 4
_CORES = 2

Strict = dict[tuple[str, int], list[bool]]
"""Strict answers by policy and length, all seeds concatenated."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, read, print tables and the last line."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        start = options.start or policies.supervised(folder)
        runs = {seed: policies.reinforced(start, folder, steps=options.steps, seed=seed) for seed in options.seeds}
        rows, strict = _read(start, {seed: run.exported for seed, run in runs.items()}, options, folder)
    curves = [
        Curve(seed=seed, held_out=_percent(run.held_out), sampled=_percent(run.sampled)) for seed, run in runs.items()
    ]
    found = Found(steps=options.steps, curves=curves, rows=rows, headline=_headline(strict))
    show("held-out documents by length", [dict(row) for row in rows])
    if options.keep:
        results.keep(found)
        save_curves(curves, results.FOLDER / "training_curve.svg")
        save_lengths(rows, results.FOLDER / "training_lengths.svg")
    last = {"benchmark": "training", "steps": options.steps, **found["headline"], "kept": results.kept_headline()}
    print(orjson.dumps(last).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.training")
    parser.add_argument("--start", type=Path, help="a checkpoint to start from; default: train one")
    parser.add_argument("--folder", type=Path, help="folder of checkpoints; an interrupted run resumes from it")
    parser.add_argument("--steps", type=int, default=6, help="GRPO steps of 128 rollouts each")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="one run and one set of documents per seed")
    parser.add_argument("--times", type=int, nargs="+", default=[1, 400], help="document lengths, in training lengths")
    parser.add_argument("--calls", type=int, default=6_500, help="calls for each row: fewer documents when longer")
    parser.add_argument("--farthest", type=int, help="one more length, read only by the first seed's policies")
    parser.add_argument("--farthest-documents", type=int, default=8)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/")
    return parser


def _read(start: Path, trained: dict[int, Path], options: argparse.Namespace, folder: Path) -> tuple[list[Row], Strict]:
    """Read every length with every policy; both policies of a seed read the same documents, concurrently."""
    rows, strict = list[Row](), Strict()
    with ProcessPoolExecutor(_CORES, mp_context=get_context("spawn")) as cores:
        for reading in _readings(options):
            readers = {BEFORE: start, AFTER: trained[reading.seed]}
            read = partial(read_or_recall, reading, folder)
            for policy, scores in zip(readers, cores.map(read, readers, readers.values()), strict=True):
                rows.append(_row(policy, reading, scores))
                print(rows[-1], flush=True)
                strict.setdefault((policy, reading.times), []).extend(each.strict for each in scores)
    return rows, strict


def _readings(options: argparse.Namespace) -> Iterator[Reading]:
    """Yield the readings of each seed in turn; only the first seed's policies read the longest length."""
    for seed in options.seeds:
        for times in options.times:
            count = max(_FEWEST, min(_MOST, options.calls // (times * TRAINED_CHUNKS + 1)))
            yield Reading(seed=seed, times=times, count=count)
    if options.farthest:
        yield Reading(seed=options.seeds[0], times=options.farthest, count=options.farthest_documents)


def _row(policy: str, reading: Reading, scores: Sequence[Scores]) -> Row:
    share = Share.of([each.strict for each in scores])
    return Row(
        policy=policy,
        seed=reading.seed,
        times=reading.times,
        document_tokens=reading.times * TRAINED_CHUNKS * load_profile("tiny").budget.chunk_tokens,
        documents=share.count,
        strict=share.percent,
        low=share.low,
        high=share.high,
        lenient=Share.of([each.lenient for each in scores]).percent,
    )


def _headline(strict: Strict) -> dict[str, object]:
    """Return the figures of the last line without those of lengths that were not read."""
    times = sorted({times for _, times in strict})
    found: dict[str, object] = {}
    if 1 in times:
        gain = paired_gain(strict[BEFORE, 1], strict[AFTER, 1])
        found |= {"grpo_gain_points": gain.points, "grpo_gain_ci": _interval(gain)}
        found |= {"em_1x": Share.of(strict[AFTER, 1]).percent, "em_1x_before": Share.of(strict[BEFORE, 1]).percent}
    for far in (each for each in times if each > 1):
        found[f"em_{far}x"] = Share.of(strict[AFTER, far]).percent
        if 1 in times:
            lost = drop(strict[AFTER, 1], strict[AFTER, far])
            found |= {f"drop_1x_to_{far}x_points": lost.points, f"drop_1x_to_{far}x_ci": _interval(lost)}
    return found


def _percent(curve: policies.Curve) -> list[tuple[int, float]]:
    return [(step, round(100 * share, 2)) for step, share in curve]


def _interval(gain: Gain) -> list[float]:
    return [gain.low, gain.high]


if __name__ == "__main__":
    main()
