"""schemathesis over our own OpenAPI document: no failure of ours, no answer that the document does not tell."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.worker import working
from tests.fakes.real_store import real_store
from tests.fakes.streaming_engine import MODEL, fake_engine
from tests.gateway.api_rig import ALICE_KEY, TWO_TENANTS
from tests.gateway.fuzzing import UNSENT, Report, fuzz
from tests.gateway.rig import settings_for
from tests.gateway.running import Gateway, running_gateway


@asynccontextmanager
async def _whole_stack(redis_url: str, folder: Path) -> AsyncGenerator[Gateway]:
    """API and worker over the real store, and an engine that always answers."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(fake_engine())
        store = await stack.enter_async_context(real_store(redis_url, folder))
        settings = settings_for(
            redis_url,
            engine_url=engine.url,
            store_url=store,
            api_keys=TWO_TENANTS,
            model=MODEL,
            sync_wait_s=0.3,
            storage_url=(folder / "objects").as_uri(),
        )
        gateway = await stack.enter_async_context(running_gateway(settings))
        gateway.app.state.changes = replace(gateway.app.state.changes, longest_s=0.5)
        await stack.enter_async_context(working(gateway.work, settings))
        yield gateway


async def _fuzzed(redis_url: str, folder: Path, *, examples: int, seed: int) -> Report:
    async with _whole_stack(redis_url, folder) as gateway:
        report = await asyncio.to_thread(fuzz, gateway.url, key=ALICE_KEY, examples=examples, seed=seed)
        paths: dict[str, dict[str, object]] = gateway.app.openapi()["paths"]
    told = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert report.operations >= told - {f"POST {UNSENT}"}
    return report


@pytest.mark.timeout(1200)
async def test_every_route_keeps_to_the_document(redis_url: str, tmp_path: Path) -> None:
    report = await _fuzzed(redis_url, tmp_path, examples=8, seed=2)
    assert report.requests > 1000
    assert not report.findings, report.told()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [2, 3])
async def test_every_route_keeps_to_the_document_for_long(redis_url: str, tmp_path: Path, seed: int) -> None:
    report = await _fuzzed(redis_url, tmp_path, examples=300, seed=seed)
    assert not report.findings, report.told()
