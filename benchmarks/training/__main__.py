"""``python -m benchmarks.training``: measures whether GRPO raises held-out answers, and at which document lengths.

A start is trained under supervision in a minute or two, then by GRPO on verl with the served loop; both policies read
held-out documents at multiples of the training length. The last line is one JSON object; ``--keep`` writes the result
and the plots, which later runs name as ``kept``. Needs the trainer's environment (``make setup-trainer``).
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import orjson

from benchmarks.comparing import Gain, Share, drop, paired_gain
from benchmarks.kept import show
from benchmarks.training import policies, results
from benchmarks.training.plot import save_curves, save_lengths
from benchmarks.training.reading import PARTS, Loop, Reading, Scores, parts_of, read_or_recall
from benchmarks.training.results import Curve, Found, Row
from memloop.profiles import load_profile
from trainer.tiny.documents import TRAINED_CHUNKS

BEFORE, AFTER = "before", "after"
_CORES = 2

Answers = dict[tuple[str, int], list[bool]]
"""Strict answers by policy and length, all seeds concatenated."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, read, print tables and the last line."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        plan = policies.PLANS[options.plan]
        start = options.start or policies.supervised(plan, folder)
        runs = {
            seed: policies.reinforced(plan, start, folder, steps=options.steps, seed=seed, changes=options.set)
            for seed in options.seeds
        }
        readings = _readings(start, {seed: run.exported for seed, run in runs.items()}, plan.loop, options)
        rows, strict = _read(readings, folder)
    curves = [
        Curve(seed=seed, held_out=_percent(run.held_out), sampled=_percent(run.sampled)) for seed, run in runs.items()
    ]
    found = Found(plan=options.plan, steps=options.steps, curves=curves, rows=rows, headline=_headline(strict))
    show("held-out documents by length", [dict(row) for row in rows])
    if options.keep:
        results.keep(found)
        save_curves(curves, results.FOLDER / f"training-{options.plan}-curve.svg")
        save_lengths(rows, results.FOLDER / f"training-{options.plan}-lengths.svg")
    last = {
        "benchmark": "training",
        "plan": options.plan,
        "steps": options.steps,
        **found["headline"],
        "kept": results.kept_headline(options.plan),
    }
    print(orjson.dumps(last).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.training")
    parser.add_argument("--plan", choices=sorted(policies.PLANS), default="hasty", help="the start and its recipe")
    parser.add_argument("--start", type=Path, help="a checkpoint to start from; default: train the plan's")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="changes of the recipe")
    parser.add_argument("--folder", type=Path, help="folder of checkpoints; an interrupted run resumes from it")
    parser.add_argument("--steps", type=int, default=6, help="GRPO steps of 128 rollouts each")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="one run and one set of documents per seed")
    parser.add_argument("--times", type=int, nargs="+", default=[1, 100, 400], help="lengths, in training lengths")
    parser.add_argument("--documents", type=int, default=32, help="documents of each length beyond the training length")
    parser.add_argument("--documents-1x", type=int, default=256, help="documents of the training length")
    parser.add_argument("--documents-before", type=int, default=0, help="as --documents, of the policy before")
    parser.add_argument("--farthest", type=int, help="one more length, read only by the first seed's policy after")
    parser.add_argument("--farthest-documents", type=int, default=8)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/")
    return parser


def _readings(start: Path, trained: dict[int, Path], loop: Loop, options: argparse.Namespace) -> list[Reading]:
    """Return all readings. Both policies of a seed read the same documents of the training length."""
    readings = list[Reading]()
    for seed, times in product(trained, options.times):
        counts = (options.documents_1x,) * 2 if times == 1 else (options.documents_before, options.documents)
        for policy, checkpoint, count in zip((BEFORE, AFTER), (start, trained[seed]), counts, strict=True):
            if count:
                readings.append(Reading(policy, checkpoint, seed=seed, times=times, count=count, loop=loop))
    if options.farthest:
        seed = options.seeds[0]
        times, count = options.farthest, options.farthest_documents
        readings.append(Reading(AFTER, trained[seed], seed=seed, times=times, count=count, loop=loop))
    return readings


def _read(readings: Sequence[Reading], folder: Path) -> tuple[list[Row], Answers]:
    """Read everything, each reading on all cores."""
    rows, strict = list[Row](), Answers()
    with ProcessPoolExecutor(_CORES, mp_context=get_context("spawn")) as cores:
        found = cores.map(partial(read_or_recall, folder=folder), parts_of(readings))
        for reading in readings:
            scores = [score for _ in range(PARTS) for score in next(found)]
            rows.append(_row(reading, scores))
            print(rows[-1], flush=True)
            strict.setdefault((reading.policy, reading.times), []).extend(each.strict for each in scores)
    return rows, strict


def _row(reading: Reading, scores: Sequence[Scores]) -> Row:
    share = Share.of([each.strict for each in scores])
    return Row(
        policy=reading.policy,
        seed=reading.seed,
        times=reading.times,
        document_tokens=reading.times * TRAINED_CHUNKS * load_profile("tiny").budget.chunk_tokens,
        documents=share.count,
        strict=share.percent,
        low=share.low,
        high=share.high,
        lenient=Share.of([each.lenient for each in scores]).percent,
        faults=dict(Counter(each.fault for each in scores if each.fault)),
    )


def _headline(strict: Answers) -> dict[str, object]:
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
