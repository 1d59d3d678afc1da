"""What a user said stands in many places. Once erased and flushed, its bytes are in none of them."""

import logging
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import aiohttp
import orjson
import pytest

from gateway.worker import working
from memloop.wire.memory import Buffer, Namespace, Source
from tests.fakes.job_engine import Body, Reply, add_memory, engine_server
from tests.fakes.real_store import real_store
from tests.fakes.redis_server import RedisServer
from tests.gateway.long_reads import reader
from tests.gateway.rig import settings_for
from tests.gateway.running import Gateway, running_gateway

SECRET = "xylophone-4711-quagga"


def places_of_secret(**folders: Path) -> set[str]:
    """The folders in whose files the bytes stand."""
    return {name for name, folder in folders.items() if any(map(_has_secret, folder.rglob("*")))}


def _has_secret(path: Path) -> bool:
    """Whether it is a file with the bytes; one that is replaced meanwhile has none any more."""
    with suppress(FileNotFoundError):
        return path.is_file() and SECRET.encode() in path.read_bytes()
    return False


def said(text: str, **fields: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], "user_id": "alice", **fields}


def decider(body: Body) -> Reply:
    """Remembers whatever it is asked to decide on."""
    return add_memory(f"Noted. {SECRET}") if "tools" in body else reader(body)


async def everywhere(gateway: Gateway) -> None:
    """Items with history and metadata, raw turns, kept answers, waiting jobs, events, a buffer."""
    add = said(f"Tea. {SECRET}", infer=False, metadata={"note": SECRET})
    event = await gateway.post("/v1/memory/add", add, headers={"Idempotency-Key": "k"})
    assert event.status == 200, event.raw
    item = event.json["memories"][0]["item"]["id"]
    patch = orjson.dumps({"memory": f"Edited. {SECRET}"})
    async with gateway.http.patch(
        f"{gateway.url}/v1/memory/{item}", data=patch, headers={"Content-Type": "application/json"}
    ) as edited:
        assert edited.status == 200
    found = await gateway.post("/v1/memory/search", {"query": SECRET, "user_id": "alice"})
    assert SECRET in found.raw.decode()
    line = (await gateway.post("/v1/memory/export", {"user_id": "alice", "include_raw": True})).raw
    assert (await gateway.post("/v1/memory/import", line.replace(b"Edited", b"Twice"))).status == 200
    turn = Source(role="user", content=f"half a thought {SECRET}")
    await gateway.memory.store.put_buffer(Buffer(namespace=Namespace(tenant="local", user_id="alice"), turns=(turn,)))


async def test_after_erase_and_flush_a_secret_is_in_no_file_and_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    redis = RedisServer.start(appendonly=True)
    try:
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(engine_server(decider))
            store = await stack.enter_async_context(real_store(redis.url, tmp_path))
            settings = settings_for(redis.url, engine_url=engine.url, store_url=store, stop_wait_s=0.0)
            gateway = await stack.enter_async_context(running_gateway(settings))
            async with working(gateway.work, settings):
                await gateway.memory.traces.records.switch("local", on=True)
                decided = await gateway.post("/v1/memory/add", said(f"Decide. {SECRET}", sync=True))
                assert decided.json["memories"], decided.raw
                assert (await gateway.memory.traces.records.settings("local")).kept == 1
                await everywhere(gateway)
            assert (await gateway.post("/v1/memory/add", said(f"Waits. {SECRET}"))).status == 202
            assert places_of_secret(store=tmp_path, redis=redis.folder) == {"store", "redis"}

            async with gateway.http.delete(f"{gateway.url}/v1/memory?user_id=alice") as erased:
                counts = await erased.json()
            assert counts["vectors"] >= 2
            assert (counts["buffers"], counts["queue"]) == (1, 1)
            async with aiohttp.ClientSession() as http, http.post(f"{store}/v1/admin/flush") as flushed:
                assert flushed.status == 200, await flushed.text()

            assert places_of_secret(store=tmp_path, redis=redis.folder) == set()
            assert SECRET not in caplog.text
    finally:
        redis.stop()
