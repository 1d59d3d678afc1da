"""The conformance table of a real vLLM: every row is green, or explained."""

import pytest

from inference.conformance.command import line
from inference.conformance.probe import Probe
from inference.conformance.suite import run_checks
from memloop_clients import EngineClient
from tests.contract.conftest import TinyEngine

pytestmark = pytest.mark.engine
EXPLAINED = {"a named call ends as a call", "none calls nothing"}


async def test_vllm_does_all_that_the_loops_rely_on(tiny_engine: TinyEngine) -> None:
    metrics_url = tiny_engine.openai_url.removesuffix("/v1") + "/metrics"
    async with EngineClient(tiny_engine.openai_url, model=tiny_engine.model) as client:
        rows = [row async for row in run_checks(Probe(client, tiny_engine.model, metrics_url))]
    table = "\n".join(map(line, rows))
    print(table)
    assert [row.name for row in rows if row.verdict == "FAILED"] == [], table
    assert {row.name for row in rows if row.verdict == "explained"} <= EXPLAINED, table
