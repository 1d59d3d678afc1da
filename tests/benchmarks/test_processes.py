"""The benchmark of several processes: its arithmetic, what wrk prints, and the Qdrant stand-in that repeats itself."""

import pytest
from qdrant_client import AsyncQdrantClient, models

from benchmarks.processes.__main__ import Rate, ratios
from benchmarks.processes.compiled import read
from tests.fakes.qdrant_replaying import Replaying

_ID = "7d7f0c4e-5f5a-4b8a-9a57-6f2f9f7c1d11"


def test_the_ratio_is_what_two_processes_serve_beside_one() -> None:
    rates = [Rate(part, count, served, 1.0, 0, 1) for part, count, served in (("a", 1, 10.0), ("a", 2, 17.0))]
    assert ratios(rates) == {"a": 1.7}


def test_wrks_rate_median_and_failures_are_read() -> None:
    printed = "  Latency Distribution\n     50%%    %s\n     75%%   20.00ms\n%sRequests/sec:   1234.56\n"
    assert read(printed % ("850.00us", "")) == (1234.56, 0.85, 0)
    assert read(printed % ("12.50ms", "  Non-2xx or 3xx responses: 7\n")) == (1234.56, 12.5, 7)


def test_anything_else_is_refused() -> None:
    with pytest.raises(ValueError, match="wrk printed no rate"):
        read("unable to connect to 127.0.0.1:1")


async def test_a_repeated_search_is_answered_from_memory_until_something_is_written() -> None:
    qdrant = Replaying()
    async with qdrant.running() as url:
        client = AsyncQdrantClient(url=url, check_compatibility=False)
        size = models.VectorParams(size=2, distance=models.Distance.COSINE)
        await client.create_collection("c", {"dense": size})

        async def found() -> list[str]:
            answer = await client.query_points("c", query=[1.0, 0.0], using="dense")
            return [str(point.id) for point in answer.points]

        assert [await found(), await found()] == [[], []]
        assert len(qdrant.remembered) == 1
        await client.upsert("c", [models.PointStruct(id=_ID, vector={"dense": [1.0, 0.0]})])
        assert await found() == [_ID]
        await client.close()
