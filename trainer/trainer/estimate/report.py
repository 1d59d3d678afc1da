"""Formats an estimate: every part and every assumption, or one row of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainer.estimate.assumptions import Assumptions
from trainer.estimate.hardware import GIB
from trainer.estimate.hours import Hours
from trainer.estimate.memory import Memory

TABLE_HEAD = (
    "| Recipe | GPUs | GiB, update | GiB, rollout | cache, rows | s a step | steps | hours | GPU hours |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def table_row(name: str, memory: Memory, hours: Hours, assumed: Assumptions) -> str:
    """Format a row under TABLE_HEAD."""
    update, rollout = sum(memory.update.values()) / GIB, sum(memory.rollout.values()) / GIB
    return (
        f"| `{name}` | {hours.gpus} × {assumed.gpu} | {update:.0f} | {rollout:.0f} | {memory.cached_rows} "
        f"| {hours.step_s:.0f} | {hours.steps} | {hours.hours:.1f} | {hours.gpu_hours:.0f} |"
    )


def lines_of(name: str, memory: Memory, hours: Hours | None, assumed: Assumptions) -> Iterator[str]:
    """Yield the lines. ``hours`` is None if the engine has no room for a row."""
    verdict = "fits" if memory.fits else "DOES NOT FIT"
    yield f"{name}: {verdict} on {assumed.gpu} of {memory.gpu / GIB:.0f} GiB"
    yield _phase("update", memory.update)
    yield _phase("rollout", memory.rollout)
    yield f"  engine's cache: {memory.cache / GIB:.1f} GiB, {memory.cached_rows} rows of full length"
    if hours is not None:
        yield from _time(hours)
    yield "assumed (estimate.KEY=VALUE changes it):"
    for key, field in Assumptions.model_fields.items():
        yield f"  {key}={getattr(assumed, key)}" + (f"  {field.description}" if field.description else "")


def _phase(name: str, parts: Mapping[str, float]) -> str:
    shown = ", ".join(f"{part} {size / GIB:.1f}" for part, size in parts.items())
    return f"  {name}: {sum(parts.values()) / GIB:.1f} GiB a GPU ({shown})"


def _time(hours: Hours) -> Iterator[str]:
    yield (
        f"  a step: {hours.step_s:.0f} s (reading {hours.reading_s:.0f}, writing {hours.writing_s:.0f}, "
        f"passes {hours.passes_s:.0f}, overhead {hours.overhead_s:.0f})"
    )
    yield (
        f"  of it: {hours.rows:.0f} rows, {hours.prompt_tokens / 1e6:.1f} M tokens read, "
        f"{hours.reply_tokens / 1e6:.1f} M written, {hours.rows_at_once:.0f} rows at once in an engine"
    )
    yield f"  the run: {hours.steps} steps, {hours.hours:.1f} hours, {hours.gpu_hours:.0f} GPU hours"
