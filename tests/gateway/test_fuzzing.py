"""schemathesis over our own OpenAPI document: no failure of ours, no answer that the document does not tell."""

import asyncio
from pathlib import Path

import pytest

from tests.gateway.api_rig import ALICE_KEY, TWO_TENANTS
from tests.gateway.fuzzing import UNSENT, Report, fuzz
from tests.gateway.whole_stack import whole_stack


async def _fuzzed(redis_url: str, folder: Path, *, examples: int, seed: int, edges: bool) -> Report:
    async with whole_stack(redis_url, folder, api_keys=TWO_TENANTS) as gateway:
        report = await asyncio.to_thread(fuzz, gateway.url, key=ALICE_KEY, examples=examples, seed=seed, edges=edges)
        paths: dict[str, dict[str, object]] = gateway.app.openapi()["paths"]
    told = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert report.operations >= told - {f"POST {UNSENT}"}
    return report


@pytest.mark.timeout(1200)
async def test_every_route_keeps_to_the_document(redis_url: str, tmp_path: Path) -> None:
    report = await _fuzzed(redis_url, tmp_path, examples=4, seed=2, edges=False)
    assert report.requests > 500
    assert not report.findings, report.told()


@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("seed", [2, 3])
async def test_every_route_keeps_to_the_document_for_long(redis_url: str, tmp_path: Path, seed: int) -> None:
    report = await _fuzzed(redis_url, tmp_path, examples=300, seed=seed, edges=True)
    assert not report.findings, report.told()
