"""The canary's rule and its order of steps, on a gateway whose calls a script counts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memloop.wire.errors import Unavailable
from memloop.wire.rollouts import CALL_BOUNDS_S, Rollout, RolloutChange, TargetCalls
from trainer.promotion.canary import Canary, Stage
from trainer.promotion.command import main
from trainer.promotion.rule import CanaryRule, Window, quantile, stage_window

FAST, SLOW = 0.2, 4.0
_CLASSES = len(CALL_BOUNDS_S) + 1


def calls(count: int, *, failed: int = 0, each_s: float = FAST) -> Window:
    place = sum(bound < each_s for bound in CALL_BOUNDS_S)
    return Window(count, failed, tuple((count - failed) * (number == place) for number in range(_CLASSES)))


@dataclass
class CountingGateway:
    """Every look at the rollout finds so many calls more; ``failing`` of the candidate's fail from a share on."""

    more: int = 50
    failing: float = 0.0
    from_share: float = 0.0
    slow: bool = False
    shares: list[float] = field(default_factory=list[float])
    kept: Rollout | None = None
    breaks: Callable[[], None] = lambda: None

    async def rollouts(self) -> tuple[Rollout, ...]:
        assert self.kept is not None
        self.breaks()
        share = self.kept.share
        failed = round(self.more * self.failing) if share >= self.from_share else 0
        candidate = calls(self.more, failed=failed, each_s=SLOW if self.slow else FAST)
        self.kept = self.kept.model_copy(
            update={
                "incumbent_calls": plus(self.kept.incumbent_calls, calls(self.more)),
                "candidate_calls": plus(self.kept.candidate_calls, candidate),
            }
        )
        return (self.kept,)

    async def change_rollout(self, change: RolloutChange) -> Rollout:
        self.shares.append(change.share)
        if self.kept is None:
            none = TargetCalls(model=change.model, calls=0, failed=0, durations=(0,) * _CLASSES)
            self.kept = Rollout(id="1", created=1, incumbent_calls=none, candidate_calls=none, **change.model_dump())
        self.kept = self.kept.model_copy(update={"share": change.share})
        return self.kept

    async def end_rollout(self, model: str) -> bool:
        del model
        self.shares.append(0.0)
        was, self.kept = self.kept, None
        return was is not None


def plus(before: TargetCalls, more: Window) -> TargetCalls:
    durations = tuple(map(sum, zip(before.durations, more.durations, strict=True)))
    return TargetCalls(
        model=before.model, calls=before.calls + more.calls, failed=before.failed + more.failed, durations=durations
    )


async def no_pause(_: float) -> None:
    return


async def run(gateway: CountingGateway, **changes: float) -> tuple[bool, list[Stage]]:
    stages: list[Stage] = []
    canary = Canary("reader", "next", (0.05, 0.5), stage_s=changes.get("stage_s", 3600.0))
    return await canary.run(gateway, stages.append, pause=no_pause), stages


async def test_a_good_candidate_gets_more_requests_stage_by_stage_and_then_all() -> None:
    gateway = CountingGateway()
    promoted, stages = await run(gateway)
    assert promoted
    assert [stage.verdict for stage in stages] == ["good", "good"]
    assert gateway.shares == [0.0, 0.05, 0.5, 1.0]


async def test_one_that_fails_more_often_loses_all_requests_at_once() -> None:
    gateway = CountingGateway(failing=0.1, from_share=0.5)
    promoted, stages = await run(gateway)
    assert not promoted
    assert [stage.verdict for stage in stages] == ["good", "bad"]
    assert "it fails more often than 1.0%" in stages[-1].figures
    assert gateway.shares == [0.0, 0.05, 0.5, 0.0]


async def test_a_slow_one_is_rolled_back() -> None:
    promoted, stages = await run(CountingGateway(slow=True))
    assert not promoted
    assert "more than 1.5 times the incumbent's" in stages[-1].figures


async def test_a_stage_without_enough_calls_is_rolled_back() -> None:
    gateway = CountingGateway(more=0)
    promoted, stages = await run(gateway, stage_s=0.0)
    assert not promoted
    assert "too few calls" in stages[-1].figures
    assert gateway.shares[-1] == 0.0


async def test_a_canary_that_is_interrupted_gives_all_requests_back() -> None:
    def away() -> None:
        raise Unavailable("gone")

    gateway = CountingGateway(breaks=away)
    with pytest.raises(Unavailable):
        await run(gateway)
    assert gateway.shares[-1] == 0.0


@pytest.mark.parametrize(
    ("incumbent", "candidate", "verdict"),
    [
        pytest.param(calls(100), calls(100), "good", id="equal"),
        pytest.param(calls(100), calls(99), "wait", id="too few of the candidate"),
        pytest.param(calls(99), calls(500), "wait", id="too few of the incumbent"),
        pytest.param(calls(100), calls(100, failed=1), "good", id="at the limit"),
        pytest.param(calls(100), calls(100, failed=2), "bad", id="over the limit"),
        pytest.param(calls(3), calls(3, failed=3), "bad", id="more failures than the whole stage may have"),
        pytest.param(calls(3), calls(3, failed=1), "wait", id="one early failure"),
        pytest.param(calls(100, failed=20), calls(100, failed=20), "good", id="both fail alike"),
        pytest.param(calls(100), calls(100, each_s=SLOW), "bad", id="slow"),
        pytest.param(calls(100, each_s=SLOW), calls(100), "good", id="faster"),
    ],
)
def test_the_verdict_on_a_stage(incumbent: Window, candidate: Window, verdict: str) -> None:
    assert CanaryRule().judge(incumbent, candidate)[0] == verdict


def test_the_95th_percentile_lies_within_its_class() -> None:
    durations = [0] * _CLASSES
    durations[2], durations[4] = 90, 10  # up to 0.25 s, and 0.5 to 1 s
    assert quantile(durations, 0.95) == pytest.approx(0.75)
    assert quantile([0] * _CLASSES, 0.95) is None
    durations[-1] = 1000
    assert quantile(durations, 0.95) == CALL_BOUNDS_S[-1]


def test_a_stage_counts_what_came_after_its_beginning() -> None:
    first = Rollout(
        id="1",
        model="a",
        candidate="b",
        share=0.5,
        created=1,
        incumbent_calls=TargetCalls(model="a", calls=10, failed=1, durations=(9, *[0] * (_CLASSES - 1))),
        candidate_calls=TargetCalls(model="b", calls=4, failed=4, durations=(0,) * _CLASSES),
    )
    later = first.model_copy(
        update={"candidate_calls": TargetCalls(model="b", calls=9, failed=5, durations=(0, 4, *[0] * (_CLASSES - 2)))}
    )
    assert stage_window(first, later) == (
        Window(0, 0, (0,) * _CLASSES),
        Window(5, 1, (0, 4, *[0] * (_CLASSES - 2))),
    )


@pytest.mark.parametrize("stages", ["0.5,0.05", "0", "1", "0.1,0.1", "lots"])
def test_stages_that_do_not_rise_are_refused(stages: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    needed = ["--candidate", str(tmp_path), "--gateway", "http://x", "--inference", "http://y", "--incumbent", "m"]
    with pytest.raises(SystemExit) as ended:
        main([*needed, "--held-out", "f", "--out", "o", "--stages", stages])
    assert ended.value.code == 2
    assert "--stages" in capsys.readouterr().err
