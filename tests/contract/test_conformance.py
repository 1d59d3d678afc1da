"""The conformance table of a real vLLM: every row about the engine is green, or explained.

The last row of the writer is about the model, and the tiny one has no everyday facts to keep.
"""

import pytest

from inference.conformance import tools
from inference.conformance.command import line
from inference.conformance.probe import Probe
from inference.conformance.suite import CHECKS, run_checks
from memloop_clients import EngineClient
from tests.contract.conftest import TinyEngine

pytestmark = pytest.mark.engine
OF_THE_ENGINE = [check for check in CHECKS if check is not tools.the_writer_keeps_what_it_is_told]
EXPLAINED = {"a named call ends as a call", "none calls nothing"}


async def test_vllm_does_all_that_the_loops_rely_on(tiny_engine: TinyEngine) -> None:
    metrics_url = tiny_engine.openai_url.removesuffix("/v1") + "/metrics"
    async with EngineClient(tiny_engine.openai_url, model=tiny_engine.model) as client:
        rows = [row async for row in run_checks(Probe(client, tiny_engine.model, metrics_url), OF_THE_ENGINE)]
    table = "\n".join(map(line, rows))
    print(table)
    assert [row.name for row in rows if row.verdict == "FAILED"] == [], table
    assert {row.name for row in rows if row.verdict == "explained"} <= EXPLAINED, table
