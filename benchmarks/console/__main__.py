"""Measures the console in a real Chromium. Run: ``make bench-console``.

A real gateway serves the pages. Of the API's answers those of the large lists are canned, so that the figures are the
browser's. The last line is one JSON object.
"""

import argparse
import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import orjson
from playwright.async_api import Page, Route, async_playwright

from benchmarks.console import canned
from benchmarks.gateway import servers
from benchmarks.kept import FOLDER, Cells, show, write_dated
from benchmarks.mock_engine import mock_engine
from gateway.console.routes import PACKAGED

CHROMIUM: Final = os.environ.get("MEMLOOP_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
WATCH: Final = (Path(__file__).parent / "watch.js").read_text("utf-8")
_PATIENCE_MS: Final = 300_000
_OPTIONS: Final = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
_PAINTED: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
_FETCHED: Final = """performance.getEntriesByType("resource")
  .filter(({ name }) => name.includes("/assets/"))
  .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)"""
_SCROLLED: Final = """async ({ label, pixels, frames }) => {
  const list = document.querySelector(`[role=list][aria-label="${label}"]`);
  for (let frame = 0; frame < frames; frame += 1) {
    list.scrollTop += pixels;
    await new Promise(requestAnimationFrame);
  }
}"""
_FILLED: Final = """async ({ label, wanted }) => {
  const list = document.querySelector(`[role=list][aria-label="${label}"]`);
  const known = () => Number(list.querySelector("[aria-setsize]").getAttribute("aria-setsize"));
  while (known() < wanted) {
    list.scrollTop = list.scrollHeight;
    await new Promise(requestAnimationFrame);
  }
}"""


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Page]:
    """A page of a fresh Chromium whose large answers are canned, and which is watched."""

    async def given(route: Route) -> None:
        found = canned.answer(route.request.url)
        if found is None:
            await route.continue_()
        else:
            await route.fulfill(content_type=found[0], body=found[1])

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*_OPTIONS], timeout=_PATIENCE_MS)
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(_PATIENCE_MS)
        await context.add_init_script(WATCH)
        page = await context.new_page()
        await page.route(f"{url}/v1/**", given)
        try:
            yield page
        finally:
            await browser.close()


async def first_load(url: str) -> Mapping[str, float]:
    """The packed scripts and styles, milliseconds to the first paint, and until the list is there and no task runs."""
    async with opened(url) as page:
        await page.goto(url + "/console/memories")
        await page.get_by_role("button", name="ann").wait_for()
        there_ms: float = await page.evaluate("performance.now()")
        await page.evaluate("new Promise(requestIdleCallback)")
        watched: dict[str, Any] = await page.evaluate("watched()")
        return {
            "first_load_kib": await page.evaluate(_FETCHED) / 1024,
            "paint_ms": await page.evaluate(_PAINTED),
            "interactive_ms": max(there_ms, watched["lastTaskEndMs"]),
        }


async def scrolled(page: Page, label: str, *, frames: int) -> Mapping[str, float]:
    """Scroll the list by 400 pixels a frame and count the frames that came late."""
    await page.evaluate("watched()")
    await page.evaluate(_SCROLLED, {"label": label, "pixels": 400, "frames": frames})
    return await page.evaluate("watched()")


async def memories(url: str, *, frames: int) -> Mapping[str, Mapping[str, float]]:
    """A list of 100,000 memories: while its pages arrive, and scrolled from its start."""
    label = "Memories"
    async with opened(url) as page:
        await page.goto(url + "/console/memories?user=ann")
        await page.get_by_role("list", name=label).get_by_role("listitem").first.wait_for()
        await page.evaluate("watched()")
        await page.evaluate(_FILLED, {"label": label, "wanted": canned.MEMORIES})
        filled: dict[str, float] = await page.evaluate("watched()")
        await page.evaluate('label => document.querySelector(`[aria-label="${label}"]`).scrollTo(0, 0)', label)
        return {"filled": filled, "scrolled": await scrolled(page, label, frames=frames)}


async def reading(url: str, *, frames: int) -> Mapping[str, Mapping[str, float]]:
    """A read of 14,000 chunks: while its events arrive, and scrolled from its start."""
    label = "Memory after each chunk"
    async with opened(url) as page:
        await page.goto(f"{url}/console/read?read={canned.READ_ID}&view=memory")
        await page.get_by_text("14,000 steps").wait_for()
        arrived: dict[str, float] = await page.evaluate("watched()")
        await page.evaluate('label => document.querySelector(`[aria-label="${label}"]`).scrollTo(0, 0)', label)
        return {"arrived": arrived, "scrolled": await scrolled(page, label, frames=frames)}


def bundle_kib() -> float:
    """The gzip size of all scripts and styles, of every page; ``make console`` prints each page's first load."""
    return sum(path.stat().st_size for path in PACKAGED.rglob("*.gz") if "swagger" not in path.name) / 1024


async def measured(url: str, *, loads: int, frames: int) -> dict[str, object]:
    """All figures."""
    first = [await first_load(url) for _ in range(loads)]
    return {
        **{name: round(median(load[name] for load in first), 1) for name in first[0]},
        "memories": await memories(url, frames=frames),
        "read": await reading(url, frames=frames),
    }


def rows(found: Mapping[str, Any]) -> Sequence[Cells]:
    """A row for each list and phase."""
    return [
        {"list": kind, "phase": phase, **{name: round(value, 1) for name, value in figures.items()}}
        for kind in ("memories", "read")
        for phase, figures in found[kind].items()
    ]


def main() -> None:
    """Print a table and one JSON object; keep both with ``--keep``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loads", type=int, default=5, help="first loads, of which the median is kept")
    parser.add_argument("--frames", type=int, default=600, help="frames to scroll")
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/console.json")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = stack.enter_context(servers.redis_server(folder))
        store = stack.enter_context(servers.memory_store(redis=redis, folder=folder))
        engine = stack.enter_context(mock_engine(latency_s=0.0))
        gateway = stack.enter_context(servers.gateway(engine_url=engine, redis=redis, store=store))
        url = f"http://127.0.0.1:{gateway.port}"
        found = asyncio.run(measured(url, loads=given.loads, frames=given.frames))
    found = {"load_average": round(os.getloadavg()[0], 1), "all_pages_kib": round(bundle_kib(), 1), **found}
    show("The console in Chromium", rows(found))
    if given.keep:
        write_dated(FOLDER / "console.json", found)
    print(orjson.dumps(found).decode())


if __name__ == "__main__":
    main()
