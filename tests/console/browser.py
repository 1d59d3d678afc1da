"""A real Chromium on the console; a request to another origin, a script error or a broken policy fails the test."""

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.async_api import ConsoleMessage, Page, Route, async_playwright, expect

CHROMIUM: Final = os.environ.get("MEMLOOP_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
AXE: Final = Path(__file__).parents[2] / "apps/console/node_modules/axe-core/axe.min.js"
PATIENCE_MS: Final = 120_000
"""How long a page may take to show something: as long as a busy machine needs."""
expect.set_options(timeout=PATIENCE_MS)
_SERIOUS: Final = ("serious", "critical")
_STATUS_LINE: Final = "Failed to load resource"
"""What Chromium logs for any response that is not a success; the pages show those."""


@dataclass
class Seen:
    """What a page must not do."""

    foreign: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])


@asynccontextmanager
async def browsing(url: str, *, width: int = 1280, height: int = 800, dark: bool = False) -> AsyncGenerator[Page]:
    """A page of a fresh Chromium that may reach the URL's origin alone; on leaving, what it must not do is checked."""
    seen, own = Seen(), urlsplit(url).netloc

    async def checked(route: Route) -> None:
        if urlsplit(route.request.url).netloc == own:
            await route.continue_()
        else:
            seen.foreign.append(route.request.url)
            await route.abort()

    def logged(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(_STATUS_LINE):
            seen.faults.append(message.text)

    async with async_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=options, timeout=PATIENCE_MS)
        scheme = "dark" if dark else "light"
        context = await browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE_MS)
        await context.route("**/*", checked)
        page = await context.new_page()
        page.on("console", logged)
        page.on("pageerror", lambda error: seen.faults.append(str(error)))
        try:
            yield page
        finally:
            await browser.close()
    assert seen == Seen()


async def violations(page: Page) -> list[str]:
    """What axe finds serious in the page as it is."""
    await page.evaluate(AXE.read_text("utf-8"))
    found: dict[str, Any] = await page.evaluate("axe.run()")
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in _SERIOUS
        for node in one["nodes"]
    ]


async def overflows(page: Page) -> bool:
    """Whether the page is wider than its window."""
    return bool(await page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


async def only_text(page: Page) -> bool:
    """Whether hostile texts made no element and ran no script."""
    made = await page.locator("main img, main script").count()
    return made == 0 and await page.evaluate("window.hacked") is None
