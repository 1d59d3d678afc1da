"""Readiness, warnings and metrics of every process."""

import asyncio
import math
import os
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter

from memloop.chores import alongside
from memloop.wire.chat import Json
from memloop.wire.errors import Unavailable
from memloop_service import Check, create_app, watch_disk
from memloop_service.metrics import watch_dependencies
from tests.memloop_service.small_service import SETTINGS, get


async def fine() -> None:
    pass


async def broken() -> None:
    raise Unavailable("the engine cannot be reached")


async def odd() -> None:
    raise OSError("redis://:password@host")


@pytest.mark.parametrize(
    ("readiness", "status", "dependencies"),
    [
        ({}, 200, {}),
        ({"redis": fine}, 200, {"redis": "ok"}),
        ({"redis": fine, "engine": broken}, 503, {"redis": "ok", "engine": "the engine cannot be reached"}),
        ({"redis": odd}, 503, {"redis": "OSError"}),
    ],
)
async def test_readiness_names_every_dependency(
    readiness: dict[str, Check], status: int, dependencies: dict[str, str]
) -> None:
    app = create_app("test", settings=SETTINGS, readiness=readiness)
    response = await get("/readyz", app)
    assert (response.status_code, response.json()["dependencies"]) == (status, dependencies)
    assert ("error" in response.json()) == (status == 503)
    assert (await get("/livez", app)).status_code == 200


async def refused_writes() -> str | None:
    return "the engine refuses memory writes"


async def quiet() -> str | None:
    return None


async def unsure() -> str | None:
    raise Unavailable("Redis is gone")


async def test_a_warning_stands_beside_readiness_and_changes_nothing() -> None:
    warnings = {"writes": refused_writes, "other": quiet, "third": unsure}
    ready = await get("/readyz", create_app("test", settings=SETTINGS, warnings=warnings))
    assert ready.status_code == 200
    assert ready.json() == {"status": "ok", "dependencies": {}, "warnings": {"writes": await refused_writes()}}
    without = await get("/readyz", create_app("test", settings=SETTINGS, warnings={"other": quiet}))
    assert without.json() == {"status": "ok", "dependencies": {}}


async def test_metrics_are_the_process_own_and_the_event_loop_is_watched() -> None:
    registry = CollectorRegistry()
    Counter("things", "Things", registry=registry).inc()
    opened: list[str] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        opened.append("opened")
        yield
        opened.append("closed")

    app = create_app("test", settings=SETTINGS, registry=registry, lifespan=lifespan)
    async with app.router.lifespan_context(app):
        text = (await get("/metrics", app)).text
    assert "things_total 1.0" in text
    assert opened == ["opened", "closed"]


async def test_every_process_exports_its_part_its_version_and_its_memory() -> None:
    text = (await get("/metrics", create_app("memloop-worker", settings=SETTINGS))).text
    assert re.search(r'memloop_build_info\{part="worker",version="\d+\.\d+\.\d+"\} 1\.0', text)
    limit = re.search(r"^process_memory_limit_bytes (\S+)$", text, re.MULTILINE)
    assert limit is not None
    assert 2**27 < float(limit[1]) <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


async def test_dependencies_are_asked_again_and_again() -> None:
    registry, answers, asked_twice = CollectorRegistry(), [True, False], asyncio.Event()

    async def flaky() -> None:
        if not answers.pop(0):
            asked_twice.set()
            raise Unavailable("gone")

    async def sound() -> None:
        await asyncio.sleep(0)

    async with alongside(watch_dependencies(registry, {"store": sound, "redis": flaky}, every_s=0)):
        await asked_twice.wait()
        await asyncio.sleep(0)
    assert registry.get_sample_value("dependency_up", {"dependency": "store"}) == 1.0
    assert registry.get_sample_value("dependency_up", {"dependency": "redis"}) == 0.0


def test_a_disk_is_measured_at_each_scrape_and_a_missing_folder_is_nan(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    watch_disk(registry, tmp_path / "data")
    assert math.isnan(registry.get_sample_value("disk_free_ratio") or 0)
    (tmp_path / "data").mkdir()
    assert 0 < (registry.get_sample_value("disk_free_ratio") or 0) <= 1


async def test_details_are_shown_to_who_asks_for_them() -> None:
    async def how() -> Json:
        return {"form": "json"}

    async def away() -> Json:
        raise Unavailable("not now")

    app = create_app("test", settings=SETTINGS, details={"models": how, "others": away})
    assert (await get("/readyz?verbose", app)).json()["details"] == {"models": {"form": "json"}}
    assert "details" not in (await get("/readyz", app)).json()
    assert (await get("/readyz?wordy", app)).status_code == 400
