"""``python -m trainer promote``: gate a candidate, then move production to it step by step, by rule.

The candidate and the incumbent are models of one gateway's models file, each with an engine of its own. Exits with 0
when all requests go to the candidate, and prints its registry entry; with 1 and the reason on stderr when it was
refused or rolled back: all requests then go to the incumbent; with 2 if nothing was decided, and nothing was moved.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memloop.profiles import ProfileError
from memloop.wire.errors import MemloopError
from memloop_clients.gateway import GatewayClient
from trainer.data.json_rows import DataError
from trainer.data.progress import Progress
from trainer.gate.card import table
from trainer.gate.command import add_arguments, plan_of
from trainer.gate.conformance import check_engine
from trainer.gate.run import EngineCheck, Outcome, Plan, gate, served_by
from trainer.promotion.canary import Canary, Stage
from trainer.promotion.rule import CanaryRule
from trainer.rollout.export_record import ExportError


@dataclass(slots=True)
class Steps:
    """The steps so far, printed as a table on stderr: their names, seconds and results."""

    show: Callable[[str], object]
    began: float = field(default_factory=time.monotonic)

    def step(self, name: str, result: str, seconds: float | None = None) -> None:
        """Print a step; without ``seconds``, it began when the last one ended."""
        now = time.monotonic()
        self.show(f"{name:<14} {now - self.began if seconds is None else seconds:>8.1f} s  {result}")
        self.began = now


def main(arguments: Sequence[str] | None = None, *, engine_check: EngineCheck = check_engine) -> None:
    """Gate, canary, promotion or rollback."""
    options = _parser().parse_args(arguments)
    steps = Steps(lambda line: print(line, file=sys.stderr, flush=True))
    try:
        entry = asyncio.run(_promote(options, steps, engine_check))
    except (DataError, ExportError, ProfileError, OSError, MemloopError) as error:
        print(
            f"{error}\nNothing was decided. Run the same command again: the gate's answers are kept.", file=sys.stderr
        )
        sys.exit(2)
    if entry is None:
        sys.exit(1)
    print(entry, end="")


async def _promote(options: argparse.Namespace, steps: Steps, engine_check: EngineCheck) -> str | None:
    """Return the candidate's registry entry, or None when it was refused or rolled back."""
    plan = plan_of(options)
    candidate = (await served_by(plan.launcher)).model.id
    if candidate == plan.incumbent:
        raise DataError(f"{plan.launcher} serves the incumbent {plan.incumbent}: give the candidate an id of its own")
    gateway = _gateway(options, plan)
    try:
        await _check_free(gateway, plan.incumbent)
        outcome = await gate(plan, Progress(), engine_check=engine_check)
        _show(outcome, steps)
        if outcome.entry is None or not await _moved(options, gateway, plan.incumbent, candidate, steps):
            return None
        return outcome.entry
    finally:
        await gateway.close()


def _gateway(options: argparse.Namespace, plan: Plan) -> GatewayClient:
    key = os.environ.get(options.admin_key_variable) or plan.candidate_at.api_key
    return GatewayClient(plan.candidate_at.gateway, api_key=key)


async def _check_free(gateway: GatewayClient, incumbent: str) -> None:
    """Raise DataError when another model answers the incumbent's requests: the gate would measure that one."""
    for rollout in await gateway.rollouts():
        if rollout.model == incumbent and rollout.share > 0:
            raise DataError(
                f"{rollout.share:.0%} of the requests for {incumbent} go to {rollout.candidate}. If it was promoted, "
                f"give {incumbent} its engine in the models file. Then end the rollout: "
                f"DELETE /v1/admin/rollouts?model={incumbent}"
            )


def _show(outcome: Outcome, steps: Steps) -> None:
    if outcome.comparisons:
        steps.show(table(outcome.comparisons))
    steps.step("gate", "passed" if outcome.entry else f"refused: {'; '.join(outcome.against)}")


async def _moved(
    options: argparse.Namespace, gateway: GatewayClient, incumbent: str, candidate: str, steps: Steps
) -> bool:
    def on_stage(stage: Stage) -> None:
        steps.step(f"canary {stage.share:.0%}", f"{stage.verdict}: {stage.figures}", stage.seconds)

    rule = CanaryRule(options.min_calls, options.max_failures, options.max_slowdown)
    canary = Canary(incumbent, candidate, options.stages, rule, options.stage_timeout_s, options.poll_s)
    promoted = await canary.run(gateway, on_stage)
    by = candidate if promoted else incumbent
    steps.step("promotion" if promoted else "rollback", f"{by} serves every request for {incumbent}", 0.0)
    return promoted


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer promote", description=__doc__)
    add_arguments(parser)
    add, rule = parser.add_argument, CanaryRule()
    add("--stages", type=_stages, default=(0.05, 0.25, 0.5), help="shares of the requests (default 0.05,0.25,0.5)")
    add("--min-calls", type=int, default=rule.min_calls, help="of each model in a stage (default %(default)s)")
    add(
        "--max-failures",
        type=_share,
        default=rule.max_failures,
        help="above the incumbent's rate, 0 to 1 (%(default)s)",
    )
    add(
        "--max-slowdown",
        type=float,
        default=rule.max_slowdown,
        help="of the 95th percentile (default %(default)s times)",
    )
    add("--stage-timeout-s", type=float, default=3600.0, help="then a stage has too few calls (default %(default)s)")
    add("--poll-s", type=float, default=2.0, help="between two looks at the figures (default %(default)s)")
    add("--admin-key-variable", default="MEMLOOP_ADMIN_KEY", metavar="NAME", help="an operator's key (%(default)s)")
    return parser


def _stages(text: str) -> tuple[float, ...]:
    stages = tuple(_share(each) for each in text.split(","))
    if list(stages) != sorted(set(stages)) or not all(0 < each < 1 for each in stages):
        raise argparse.ArgumentTypeError("rising shares between 0 and 1, such as 0.05,0.25")
    return stages


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError("between 0 and 1")
    return share


if __name__ == "__main__":
    main()
