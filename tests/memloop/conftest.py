"""A runner of scenarios on each of the event loops that we serve on."""

import asyncio

import pytest
import uvloop

from tests.memloop.http1_rig import Run, Scenario


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a scenario to its end on one of the loops."""

    def runs(scenario: Scenario) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(scenario())

    return runs
