"""Renders the scorecard in Markdown, a figure, and the run's last line."""

# pyright: reportUnknownMemberType=false
# matplotlib's own types are partly unknown.

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib as mpl
import orjson
from matplotlib.figure import Figure

from evaluation.memory.point_scores import PointScore
from evaluation.memory.scores import RecallScore, RowScore, Share

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "memloop"
_NAMES = {"ours": "ours", "raw": "raw turns only", "full": "full context", "off": "memory off"}
_COLUMNS = (
    *("row", "questions", "accuracy, % [95 %]", "F1, %", "failed", "unreadable verdicts"),
    *("ingest tokens in/out", "answer tokens in/out", "tokens for an answer", "judge tokens"),
    *("p50 s", "p95 s", "ingest s", "cost, $"),
)


@dataclass(frozen=True, slots=True)
class Card:
    """The results of a run; ``run`` describes it."""

    run: dict[str, object]
    rows: Sequence[RowScore]
    recall: RecallScore | None
    points: PointScore | None


def markdown(card: Card) -> str:
    """Render the scorecard."""
    parts = [f"# {card.run['format']}: a memory evaluation", _about(card)]
    if card.rows:
        parts += ["## Answers", _table(_COLUMNS, [_cells(row) for row in card.rows]), _VERDICTS]
        parts += [_kinds_of_wrong(card.rows)] if card.run["format"] == "halumem" else []
        parts += [_categories(card.rows)]
        if any(row.set_f1 is not None for row in card.rows):
            parts += ["## The same answers by two protocols", _protocols(card.rows)]
    parts += ["## Retrieval of raw turns, no language model", _recall(card.recall)]
    if card.points:
        parts += ["## Memory points, row ours", _points(card.points)]
    return "\n\n".join(parts) + "\n"


_VERDICTS = """\
Failed questions and verdicts that cannot be read count as wrong. p50 and p95 are of one question's search and answer;
cost is of ingest and answers, not of the judge, at the prices given. Tokens are the endpoints' own counts."""


def last_line(card: Card) -> str:
    """Format the last line: one JSON object."""
    found = {
        "benchmark": "memory evaluate",
        **card.run,
        "rows": {row.row: asdict(row) for row in card.rows},
        "recall": asdict(card.recall) if card.recall else None,
        "points": asdict(card.points) if card.points else None,
    }
    return orjson.dumps(found).decode()


def save_plot(card: Card, path: Path) -> None:
    """Plot accuracy with its interval, and tokens per question, as SVG."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = [_NAMES[row.row] for row in card.rows]
    height = [100 * row.accuracy.share for row in card.rows]
    below = [100 * (row.accuracy.share - row.accuracy.low) for row in card.rows]
    above = [100 * (row.accuracy.high - row.accuracy.share) for row in card.rows]
    left.bar(names, height, yerr=[below, above], capsize=4)
    left.set_ylim(0, 105)
    left.set_ylabel("judged correct, %")
    ingest = [row.ingest.total / max(1, row.accuracy.count) for row in card.rows]
    answers = [row.answers.total / max(1, row.accuracy.count) for row in card.rows]
    right.bar(names, ingest, label="ingest")
    right.bar(names, answers, bottom=ingest, label="answers")
    right.set_ylabel("tokens for a question")
    right.legend()
    for axes in (left, right):
        axes.tick_params(axis="x", labelrotation=15)
    figure.savefig(path, metadata={"Date": None})


def _about(card: Card) -> str:
    return "\n".join(f"* {name}: {value}" for name, value in card.run.items())


def _cells(row: RowScore) -> Sequence[str]:
    lost = f" ({row.failed_sessions} sessions not stored)" if row.failed_sessions else ""
    return (
        *(_NAMES[row.row] + lost, f"{row.accuracy.count}", _percent(row.accuracy), f"{100 * row.f1:.1f}"),
        *(f"{row.failed}", f"{row.unreadable}"),
        f"{row.ingest.input} / {row.ingest.output}",
        f"{row.answers.input} / {row.answers.output}",
        *(
            f"{row.tokens_per_question:.0f}",
            f"{row.judge.total}",
            f"{row.p50_s:.3f}",
            f"{row.p95_s:.3f}",
            f"{row.ingest_s:.1f}",
        ),
        "–" if row.dollars is None else f"{row.dollars:.4f}",
    )


def _percent(share: Share) -> str:
    return f"{100 * share.share:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _categories(rows: Sequence[RowScore]) -> str:
    names = sorted({name for row in rows for name in row.by_category})
    lines = [
        (
            name,
            f"{max(row.by_category[name].count for row in rows if name in row.by_category)}",
            *(_percent(row.by_category[name]) if name in row.by_category else "–" for row in rows),
        )
        for name in names
    ]
    lines.append(("mean of the categories", "", *(f"{100 * row.task_average:.1f}" for row in rows)))
    lines += [
        (f"{name}, F1", "", *(f"{100 * row.f1_by_category.get(name, 0.0):.1f}" for row in rows)) for name in names
    ]
    return _table(("category", "questions", *(_NAMES[row.row] for row in rows)), lines)


def _protocols(rows: Sequence[RowScore]) -> str:
    """Set MemOS's figures beside ours of the same name. The answers were asked and judged by MemOS's texts."""
    head = ("row", "F1 of word sets (memos), %", "F1 (ours), %", "context tokens by cl100k (memos)")
    lines = [
        (
            _NAMES[row.row],
            *(f"{100 * f1:.1f}" for f1 in (row.set_f1 or 0.0, row.f1)),
            f"{row.context_tokens or 0.0:.0f}",
            f"{row.tokens_per_question:.0f}",
        )
        for row in rows
    ]
    return _table((*head, "tokens for an answer (ours)"), lines)


def _kinds_of_wrong(rows: Sequence[RowScore]) -> str:
    """Report hallucinated and omitted answers, in percent."""
    lines = [
        (_NAMES[row.row], *(f"{100 * share:.1f}" for share in (row.accuracy.share, row.wrong, row.missed)))
        for row in rows
    ]
    return _table(("row", "correct, %", "hallucinated, %", "omitted, %"), lines)


def _recall(recall: RecallScore | None) -> str:
    if recall is None:
        return "The data names no turns as evidence."
    lines = [
        (f"evidence {name}", *(f"{100 * shares[k]:.1f}" for k in shares))
        for name, shares in (("turns", recall.turns), ("sessions", recall.sessions))
    ]
    by_category = [(name, f"{100 * share:.1f}") for name, share in recall.by_category.items()]
    table = _table((f"{recall.questions} questions", *(f"recall@{k}, %" for k in recall.turns)), lines)
    return f"{table}\n\n{_table(('category', 'turns, recall@10, %'), by_category)}"


def _points(points: PointScore) -> str:
    shares = {
        f"extraction recall, full matches only ({points.points} points)": points.recall,
        "weighted recall, half matches count half": points.weighted_recall,
        "omission": points.omission,
        f"target precision ({points.targets} memories about a point)": points.target_precision,
        f"accuracy ({points.memories} memories)": points.accuracy,
        "extraction F1, of recall and target precision": points.f1,
        f"false memory resistance ({points.distractors} distractors)": points.resistance,
        f"updates correct ({points.updates} updates)": points.update_correct,
        "updates wrong": points.update_wrong,
        "updates omitted": points.update_omission,
        **{f"points of type {name}": share for name, share in points.by_type.items()},
    }
    return _table(("memory points", "%"), [(name, f"{100 * share:.1f}") for name, share in shares.items()])


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))
