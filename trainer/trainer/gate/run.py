"""Runs the gate in order: the candidate's files, the incumbent's answers, the candidate's server, its answers, the
rule.

The incumbent comes first, so that one GPU suffices: its answers are kept, and it need not be served again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from memloop.profiles import ProfileError
from memloop.scoring.comparison import Comparison, compare_all
from memloop.wire.checkpoint import CheckpointRecord
from memloop.wire.errors import DependencyError, Unavailable
from memloop_clients import InferenceClient
from trainer.data.json_rows import DataError
from trainer.data.progress import Progress
from trainer.data.retry_policy import RetryPolicy
from trainer.gate.asking import Answers, ask_all
from trainer.gate.card import FILE, CardFacts, ModelCard
from trainer.gate.conformance import Served, check_engine, check_files, check_served, look_at
from trainer.gate.gateway import Gateway
from trainer.gate.held_out import WRITER, HeldOut
from trainer.gate.registry_entry import entry
from trainer.gate.report import Report, file_of, reports_in
from trainer.gate.scores import scores_of


@dataclass(frozen=True, slots=True)
class Place:
    """A model's gateway and its key."""

    gateway: str
    api_key: str | None


@dataclass(frozen=True, slots=True)
class Rule:
    """The deciding score, and the largest tolerated loss of a candidate (0 to 1); 0 requires a gain."""

    score: str
    margin: float

    def text(self) -> str:
        """Format the rule in words."""
        if self.margin == 0:
            return f"{self.score} is higher than the incumbent's, with 95 % confidence"
        return f"{self.score} is not lower than the incumbent's by {self.margin:g} or more, with 95 % confidence"

    def against(self, comparisons: Sequence[Comparison]) -> list[str]:
        """Return the reasons why the candidate does not pass."""
        deciding = next(each for each in comparisons if each.score == self.score)
        if deciding.passes(self.margin):
            return []
        low, high = deciding.gain_interval
        seen = f"the gain is {deciding.gain:+.3f}, its interval {low:+.3f} to {high:+.3f} ({deciding.rows} rows)"
        return [f"not shown that {self.text()}: {seen}"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The input of the gate. ``wait_s`` bounds one row; ``row`` is the registry's row to change.

    ``launcher`` and ``incumbent_launcher`` (None: unknown) are the launchers behind the two gateways.
    """

    candidate: Path
    record: CheckpointRecord
    profile: str
    candidate_at: Place
    launcher: str
    incumbent: str
    incumbent_at: Place
    incumbent_launcher: str | None
    held_out: HeldOut
    out: Path
    rule: Rule
    row: Mapping[str, Any]
    source: str
    facts: CardFacts
    places: int = 8
    retries: RetryPolicy = RetryPolicy()  # noqa: RUF009 - frozen
    wait_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """``against`` are the reasons against the candidate; without any there is an entry for the registry."""

    against: Sequence[str]
    comparisons: Sequence[Comparison] = ()
    entry: str | None = None


EngineCheck: TypeAlias = Callable[[Served, Path], Awaitable[list[str]]]
"""Returns the reasons against the engine; the file receives its log."""


async def gate(plan: Plan, progress: Progress, *, engine_check: EngineCheck = check_engine) -> Outcome:
    """Measure the missing answers, and decide.

    Raises DataError when the served model differs from the named one, MemloopError when a server is unavailable or
    refuses.
    """
    against = await asyncio.to_thread(check_files, plan.candidate, plan.record, plan.profile)
    if against:
        return Outcome(against)
    with (
        Answers(plan.out / "incumbent.jsonl", plan.held_out, model=plan.incumbent) as incumbent,
        Answers(plan.out / "candidate.jsonl", plan.held_out, weights=plan.record.weights_sha256) as candidate,
    ):
        if incumbent.missing(plan.held_out):
            await _measure_incumbent(plan, incumbent, progress)
        async with _gateway(plan, plan.candidate_at) as gateway:
            served, against = await _looked_at(plan, gateway)
            against = against or await engine_check(served, plan.out / "conformance.txt")
            if against:
                return Outcome(against)
            await _measure(plan, candidate, gateway, served.model.id, "candidate", progress)
        return _decide(plan, candidate, incumbent)


async def _measure_incumbent(plan: Plan, answers: Answers, progress: Progress) -> None:
    if plan.incumbent_launcher is not None:
        served = await served_by(plan.incumbent_launcher)
        facts = served.model.checkpoint
        if served.model.id == plan.incumbent and facts and facts.weights_sha256 == plan.record.weights_sha256:
            raise DataError(f"the candidate is served as {plan.incumbent}: serve the incumbent until it is measured")
    async with _gateway(plan, plan.incumbent_at) as gateway:
        await _check_listed(plan, gateway, plan.incumbent)
        await _measure(plan, answers, gateway, plan.incumbent, "incumbent", progress)


async def _looked_at(plan: Plan, gateway: Gateway) -> tuple[Served, list[str]]:
    """Return the served model, and the reasons against the candidate."""
    served = await served_by(plan.launcher)
    await _check_listed(plan, gateway, served.model.id)
    profile = await gateway.profile_ref(served.model.id)
    return served, check_served(plan.candidate, plan.record, served, gateway_profile=profile)


async def served_by(launcher: str) -> Served:
    """Ask a launcher what it serves. Raises DataError and Unavailable."""
    async with InferenceClient(launcher) as client:
        try:
            return await look_at(client)
        except ProfileError as error:
            raise DataError(f"{launcher} serves no profile: {error}") from error
        except DependencyError as error:
            raise Unavailable(f"{launcher}: {error}") from error


async def _check_listed(plan: Plan, gateway: Gateway, model: str) -> None:
    models = await gateway.models()
    if model not in models:
        raise DataError(f"{gateway.url} serves no model {model}, only {', '.join(models) or 'none'}")
    if plan.held_out.loop == WRITER and len(models) > 1:
        raise DataError(f"{gateway.url} serves {', '.join(models)}: it does not report which one writes its memories")


async def _measure(plan: Plan, answers: Answers, gateway: Gateway, model: str, what: str, progress: Progress) -> None:
    missing = answers.missing(plan.held_out)
    with progress.bars() as bars:
        bar = bars.add_task(f"{what}: {model}", total=plan.held_out.count, completed=plan.held_out.count - missing)
        await ask_all(plan.held_out, answers, gateway, model=model, places=plan.places, done=lambda: bars.advance(bar))


def _decide(plan: Plan, candidate: Answers, incumbent: Answers) -> Outcome:
    comparisons = compare_all(_scores(plan.held_out, candidate), _scores(plan.held_out, incumbent))
    report = Report(
        loop=plan.held_out.loop,
        held_out=plan.held_out.path.name,
        held_out_sha256=plan.held_out.sha256,
        weights_sha256=plan.record.weights_sha256,
        incumbent=plan.incumbent,
        rule=plan.rule.text(),
        against=plan.rule.against(comparisons),
        failed=(_failed(candidate), _failed(incumbent)),
        comparisons=comparisons,
    )
    report.write(plan.out / "report.json")
    if report.against:
        return Outcome(report.against, comparisons)
    return Outcome((), comparisons, _let_pass(plan, report))


def _let_pass(plan: Plan, report: Report) -> str:
    """Write report and card into the candidate's folder, then return the registry's row."""
    report.write(file_of(plan.candidate, report.loop))
    card = ModelCard(plan.facts, plan.record, reports_in(plan.candidate, plan.record.weights_sha256))
    (plan.candidate / FILE).write_text(card.text(), "utf-8")
    return entry(plan.row, name=plan.facts.name, source=plan.source, profile=plan.profile)


def _scores(held_out: HeldOut, answers: Answers) -> list[Mapping[str, float]]:
    said = {answer.row: answer.said for answer in answers.records}
    return [scores_of(task, said[number]) for number, task in held_out.tasks()]


def _failed(answers: Answers) -> int:
    return sum(answer.error is not None for answer in answers.records)


def _gateway(plan: Plan, place: Place) -> Gateway:
    return Gateway(place.gateway, api_key=place.api_key, retries=plan.retries, wait_s=plan.wait_s)
