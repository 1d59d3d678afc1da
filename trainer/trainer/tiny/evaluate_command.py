"""The evaluation as a command: an engine behind HTTP, a table, and one line of JSON at the end."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from memloop.clients.engine import EngineClient
from memloop.profiles import load_profile
from trainer.tiny.card import write_card
from trainer.tiny.card_data import EVALUATION, Evaluation, ScoreRow
from trainer.tiny.evaluate import Score, evaluate


async def evaluate_engine(
    url: str, *, model: str, seed: int, per_kind: int, documents: int, save_to: Path | None
) -> Evaluation:
    """Score the model behind `url`; print the table, then all of it as one line of JSON."""
    console, profile = Console(), load_profile("tiny")
    async with EngineClient(url, model=model) as engine:
        scores = await evaluate(
            engine, profile, seed=seed, per_kind=per_kind, documents=documents, done=lambda each: _tell(console, each)
        )
    result = Evaluation(seed=seed, chunk_tokens=profile.budget.chunk_tokens, scores=[_row(each) for each in scores])
    console.print(_table(scores))
    print(result.model_dump_json())
    if save_to:
        (save_to / EVALUATION).write_text(result.model_dump_json() + "\n", "utf-8")
        write_card(save_to)
    return result


def _tell(console: Console, each: Score) -> None:
    console.print(f"{each.name}: {each.right} of {each.total}", style="dim", highlight=False)


def _row(each: Score) -> ScoreRow:
    low, high = each.interval()
    return ScoreRow(
        name=each.name,
        right=each.right,
        total=each.total,
        failed=each.failed,
        accuracy=round(each.accuracy, 4),
        low=round(low, 4),
        high=round(high, 4),
    )


def _table(scores: list[Score]) -> Table:
    what, interval = (Column(name, no_wrap=True) for name in ("what", "95 % interval"))
    table = Table(what, "right", "of", "failed", "share", interval, title="exact, greedy")
    for each in scores:
        low, high = each.interval()
        cells = (each.name, each.right, each.total, each.failed, f"{each.accuracy:.3f}", f"{low:.3f}..{high:.3f}")
        table.add_row(*(str(cell) for cell in cells))
    return table
