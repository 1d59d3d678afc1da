"""Numbers in bodies of our own: an integer may be written ``8.0``; one beyond 64 bits is refused, not bent."""

from pathlib import Path

import pytest

from gateway.worker import working
from tests.fakes.real_store import real_store
from tests.fakes.streaming_engine import FakeEngine
from tests.gateway.long_reads import asked
from tests.gateway.rig import settings_for
from tests.gateway.running import Gateway, running_gateway

TURN = {"messages": [{"role": "user", "content": "Tea."}], "user_id": "u1", "infer": False}


async def test_integer_may_have_a_fraction_of_zero(gateway: Gateway) -> None:
    read = await gateway.post("/v1/long-read/estimate", asked(max_rereads=2.0, memory_tokens=64.0))
    assert (read.status, read.json["chunks"]) == (200, 2)
    assert (await gateway.post("/v1/memory/search", {"query": "tea", "user_id": "u1", "top_k": 3.0})).status == 200
    assert (await gateway.chat(memory={"user_id": "u1", "top_k": 3.0})).status == 200


@pytest.mark.parametrize("value", [2.5, True, "2"])
async def test_no_integer_is(gateway: Gateway, value: object) -> None:
    answer = await gateway.post("/v1/long-read/estimate", asked(max_rereads=value))
    assert (answer.status, answer.error["param"]) == (422, "max_rereads")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**200], ids=["above", "below", "hundreds of digits"])
async def test_integer_beyond_64_bits_is_refused(gateway: Gateway, number: int) -> None:
    raw = b'{"messages": [{"role": "user", "content": "x"}], "user_id": "u1", "metadata": {"n": [%d]}}' % number
    answer = await gateway.post("/v1/memory/add", raw)
    assert (answer.status, answer.error["code"]) == (422, "number_out_of_range")


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"1" * 400], ids=["above", "below", "without exponent"])
async def test_number_that_is_infinite_is_no_json(gateway: Gateway, number: bytes) -> None:
    raw = b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "temperature": %b}' % number
    answer = await gateway.post("/v1/chat/completions", raw)
    assert (answer.status, answer.error["code"]) == (400, "invalid_json")


async def test_numbers_of_64_bits_are_kept_exactly(redis_url: str, tmp_path: Path, engine: FakeEngine) -> None:
    kept = {"least": -(2**63), "most": 2**63 - 1}
    async with real_store(redis_url, tmp_path) as store:
        settings = settings_for(redis_url, engine_url=engine.url, store_url=store, model="m")
        async with running_gateway(settings) as gateway, working(gateway.work, settings):
            answer = await gateway.post("/v1/memory/add", {**TURN, "metadata": kept})
            item = answer.json["memories"][0]["item"]
            assert (await gateway.get(f"/v1/memory/{item['id']}")).json["metadata"] == kept
