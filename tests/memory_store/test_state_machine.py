"""Hypothesis looks for a sequence of calls, waits and crashes after which the store is not what its plain model is.

The suite takes some of them, the same each time; ``make test-state-machine`` takes ten thousand others and says which.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.memory_store.state_machine import StoreMachine

_LONG = 10_000
_STEPS_PER_RUN = 50


def _run(steps: int, redis_url: str, folder: Path, *, derandomize: bool) -> int:
    StoreMachine.redis_url, StoreMachine.root = redis_url, folder
    StoreMachine.steps.clear()
    while StoreMachine.steps.total() < steps:
        run_state_machine_as_test(  # pyright: ignore[reportUnknownMemberType]
            StoreMachine,
            settings=settings(
                max_examples=5 + (steps - StoreMachine.steps.total()) // _STEPS_PER_RUN,
                stateful_step_count=_STEPS_PER_RUN,
                deadline=None,
                derandomize=derandomize,
                database=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
            ),
        )
    return StoreMachine.steps.total()


def test_the_store_is_what_its_plain_model_is(redis_url: str, quick_disk: Path) -> None:
    assert _run(150, redis_url, quick_disk, derandomize=True) >= 150


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_steps_find_no_difference(redis_url: str, quick_disk: Path) -> None:
    steps = _run(_LONG, redis_url, quick_disk, derandomize=False)

    print(f"{steps} steps, no difference: {dict(StoreMachine.steps.most_common())}")
