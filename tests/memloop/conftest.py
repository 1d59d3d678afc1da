"""Properties are checked on the same examples each time, however busy the machine is."""

import asyncio

import pytest
import uvloop
from hypothesis import HealthCheck, settings

from tests.memloop.http1_rig import Run, Scenario

settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a scenario to its end on one of the loops."""

    def runs(scenario: Scenario) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(scenario())

    return runs
