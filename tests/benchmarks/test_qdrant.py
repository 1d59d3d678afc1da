"""The benchmark of rankings runs whole: Edge, and a stand-in of a cluster over both of its protocols."""

import pytest

from benchmarks.qdrant.__main__ import run
from benchmarks.qdrant.measuring import Load
from tests.fakes.qdrant_grpc import serving_points
from tests.fakes.qdrant_server import QdrantStandIn

_PAIRS = ("grpc_over_rest", "rest_over_edge", "grpc_over_edge", "all_shards_over_one")
_LOAD = Load(rounds=1, one_by_one=2, together=16)


async def test_without_a_cluster_only_edge_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QDRANT_NODES", raising=False)

    figures = await run({"tiny": 100}, _LOAD)

    assert {name.split("_")[0] for name in figures} == {"edge"}
    assert figures["edge_per_s_tiny"] > 0


async def test_a_cluster_is_measured_over_both_protocols_and_on_all_shards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = QdrantStandIn(nodes=3)
    async with server.running() as url, serving_points(server.collections) as grpc_port:
        monkeypatch.setenv("QDRANT_NODES", url)
        monkeypatch.setenv("QDRANT_GRPC_PORT", str(grpc_port))

        figures = await run({"tiny": 100}, _LOAD)

    ratios = {name for name in figures if name.endswith("_ms_ratio_tiny")}
    assert ratios == {f"{pair}_ms_ratio_tiny" for pair in _PAIRS}
    assert not server.collections, "the benchmark leaves nothing behind"
