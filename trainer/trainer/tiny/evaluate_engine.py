"""Runs the evaluation as a command: an engine behind HTTP, a table, and one line of JSON at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from memloop.profiles import load_profile
from memloop.wire.errors import DependencyError
from memloop_clients.engine import EngineClient
from trainer.tiny.card import write_card
from trainer.tiny.card_data import EVALUATION, Evaluation, ScoreRow
from trainer.tiny.evaluate import Score, evaluate

_PAUSE_S = 1.0


async def evaluate_engine(
    url: str,
    *,
    model: str,
    profile_name: str,
    seed: int,
    per_kind: int,
    documents: int,
    save_to: Path | None,
    wait_s: float,
) -> Evaluation:
    """Score the model behind `url`, which has `wait_s` to start; print a table, then one line of JSON."""
    console, profile = Console(), load_profile(profile_name)
    async with EngineClient(url, model=model) as engine:
        await _until_up(engine, wait_s)
        scores = await evaluate(
            engine,
            profile,
            seed=seed,
            per_kind=per_kind,
            documents=documents,
            done=lambda each: _print(console, each),
        )
    result = Evaluation(seed=seed, chunk_tokens=profile.budget.chunk_tokens, scores=[_row(each) for each in scores])
    console.print(_table(scores))
    print(result.model_dump_json())
    if save_to:
        (save_to / EVALUATION).write_text(result.model_dump_json() + "\n", "utf-8")
        write_card(save_to)
    return result


async def _until_up(engine: EngineClient, wait_s: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    while True:
        try:
            return await engine.check()
        except DependencyError:
            if loop.time() >= deadline:
                raise
            await asyncio.sleep(_PAUSE_S)


def _print(console: Console, each: Score) -> None:
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
    names = ("what", "right", "failed", "share", "95 % interval")
    table = Table(*(Column(name, no_wrap=True) for name in names), title="exact, greedy")
    for each in scores:
        low, high = each.interval()
        right, interval = f"{each.right} / {each.total}", f"{low:.3f}..{high:.3f}"
        table.add_row(each.name, right, str(each.failed), f"{each.accuracy:.3f}", interval)
    return table
