"""The gateway balances over engines and stores in processes of their own. The quick form of ``make test-balancing``."""

import asyncio
from pathlib import Path

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore, fake_store
from tests.gateway.replica_rig import EngineProcess, engine_processes, kept_places
from tests.gateway.rig import eventually
from tests.gateway.running import running_gateway

READ = {"document": {"text": "one two three four. " * 200}, "chunk_tokens": 100, "strategy": "memagent"}


def over(settings: GatewaySettings, *engines: EngineProcess) -> GatewaySettings:
    changes = {"engine_url": ", ".join(engine.url for engine in engines), "model": "m", "engine_dialect": "vllm"}
    return settings.model_copy(update=changes)


async def test_chats_are_spread_and_counted_by_replica(settings: GatewaySettings, tmp_path: Path) -> None:
    async with (
        engine_processes(tmp_path, 2, running=2, seconds=0.01) as engines,
        running_gateway(over(settings, *engines)) as gateway,
    ):
        for _ in range(10):
            assert (await gateway.chat()).status == 200
        assert [len(engine.begun) for engine in engines] == [5, 5]
        names = [f'{{replica="{number}",upstream="m/0"}}' for number in (0, 1)]
        counted = [await gateway.metric(f"upstream_replica_requests_total{name}") for name in names]
        assert min(counted) >= 5  # questions about the model count beside the chats
        assert [await gateway.metric(f"upstream_replica_outstanding{name}") for name in names] == [0, 0]
        ready = 'upstream_replica_state{replica="1",state="ready",upstream="m/0"}'
        assert await gateway.metric(ready) == 1


async def test_a_read_stays_on_one_replica(settings: GatewaySettings, tmp_path: Path) -> None:
    async with (
        engine_processes(tmp_path, 3, running=3, seconds=0.01) as engines,
        running_gateway(over(settings, *engines)) as gateway,
    ):
        answers = [await gateway.post("/v1/long-read", {"question": f"read-{n}?", **READ}) for n in range(3)]
        assert {answer.json["status"] for answer in answers} == {"completed"}
        kept, steps = kept_places(engines)
        assert steps >= 3 * 8
        assert kept == steps


async def test_a_replica_that_starts_late_joins_and_one_that_is_killed_costs_its_own_requests(
    settings: GatewaySettings, tmp_path: Path
) -> None:
    async with (
        engine_processes(tmp_path, 2, running=1, seconds=0.3) as engines,
        running_gateway(over(settings, *engines)) as gateway,
    ):
        first, late = engines
        assert {(await gateway.chat()).status for _ in range(3)} == {200}
        await late.start()

        async def joined() -> bool:
            await asyncio.gather(gateway.chat(), gateway.chat())
            return bool(late.begun)

        await eventually(joined)
        sent = 'upstream_replica_requests_total{replica="1",upstream="m/0"}'
        before = await gateway.metric(sent)
        chats = [asyncio.create_task(gateway.chat(stream=True)) for _ in range(8)]
        await eventually(lambda: late.unfinished > 0 and first.unfinished > 0)
        await late.kill()
        answers = await asyncio.gather(*chats)
        whole = [answer for answer in answers if answer.status == 200 and b"data: [DONE]" in answer.raw]
        assert len(answers) - len(whole) <= await gateway.metric(sent) - before
        assert {(await gateway.chat()).status for _ in range(8)} == {200}


async def test_searches_are_spread_over_stores(settings: GatewaySettings, store: FakeStore) -> None:
    async with fake_store() as other:
        changes = {"store_url": f"{store.url},{other.url}"}
        async with running_gateway(settings.model_copy(update=changes)) as gateway:
            for _ in range(6):
                found = await gateway.post("/v1/memory/search", {"query": "Where?", "user_id": "u1"})
                assert found.status == 200
            assert [len(each.searches) for each in (store, other)] == [3, 3]
            assert await gateway.metric('upstream_replica_requests_total{replica="0",upstream="memory-store"}') == 3


@pytest.mark.parametrize("name", ["engine_url", "store_url"])
def test_a_list_without_a_url_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="need a URL"):
        GatewaySettings.model_validate({name: " , "})
