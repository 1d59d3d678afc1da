"""Takes a picture of every page of the console, light and dark. Run: ``make screenshots``.

Everything is real but the engine, which follows the rules of ``demo_data``.
"""

import asyncio
import base64
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.async_api import Page, expect

from tests.console.browser import browsing
from tests.console.demo_data import QUESTIONS, TURNS, answer, log_book
from tests.console.reading import DROP
from tests.console.stack import Stack, console_stack
from tests.fakes.redis_server import RedisServer

FOLDER: Final = Path(__file__).parents[2] / "docs/assets/console"
QUALITY: Final = 35


async def prepared(stack: Stack, url: str) -> dict[str, str]:
    """Fill the stack, read the log once, and return each picture's name with its address."""
    for user, text in TURNS:
        await stack.tell(text, user=user)
    for name in ("Web shop", "Support desk", "Nightly export"):
        await stack.gateway.post("/v1/admin/keys", {"name": name, "scopes": ["chat", "memory:read", "memory:write"]})
    items = (await stack.gateway.get("/v1/memory?user_id=ann")).json["items"]
    home = next(item["id"] for item in items if "York" in item["memory"])
    return {
        "memories": f"{url}/console/memories?user=ann&item={home}",
        "search": f"{url}/console/memories?user=ann&q=Who lives in York?",
        "users": f"{url}/console/memories",
        "decisions": f"{url}/console/decisions?user=ann",
        **{tab: f"{url}/console/operate?tab={tab}" for tab in ("health", "usage", "jobs", "keys", "policy", "audit")},
    }


async def taken(page: Page, name: str, folder: Path, scheme: str) -> None:
    """Write one picture."""
    await expect(page.get_by_label("Loading")).to_have_count(0)
    await page.evaluate("document.activeElement.blur()")
    session = await page.context.new_cdp_session(page)
    given = await session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    (folder / f"{name}-{scheme}.webp").write_bytes(base64.b64decode(given["data"]))
    if "--png" in sys.argv:
        await page.screenshot(path=folder / f"{name}-{scheme}.png")


async def read_log(page: Page, url: str) -> None:
    """Read the ship's log to its end."""
    await page.goto(url + "/console/read")
    await expect(page.get_by_role("heading", name="Read a document")).to_be_visible()
    await page.evaluate(DROP, ["log of the Marigold.txt", log_book(90)])
    await expect(page.get_by_role("status").filter(has_text="Marigold")).to_contain_text("Ready")
    await page.get_by_label("Question").fill(QUESTIONS[0])
    await page.get_by_text("More options").click()
    await page.get_by_label("Tokens of a chunk").fill("400")
    await expect(page.get_by_label("Cost at most")).to_contain_text("≤")


async def chatted(page: Page, url: str) -> None:
    """Ask for a dinner."""
    await page.goto(url + "/console/chat?user=ben")
    await page.get_by_label("Message").fill("What could I cook for dinner after my run?")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("log")).to_contain_text("curry", ignore_case=True)
    await expect(page.get_by_role("log")).to_contain_text("ignored")


async def all_pages(stack: Stack, url: str, addresses: dict[str, str], folder: Path, *, dark: bool) -> None:
    """Every page in one theme."""
    scheme = "dark" if dark else "light"
    async with browsing(url, width=1280, height=800, dark=dark) as page:
        for name, address in addresses.items():
            await page.goto(address)
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            if name == "decisions":
                await page.get_by_role("article").filter(has_text="York").get_by_role("button").first.click()
            if name == "usage":
                await stack.tell("My locker code is 482.", user="chloe")
                rate = page.get_by_role("region", name="Tokens per minute").locator("figcaption .number")
                await expect(rate).not_to_have_text("0")
                await expect(rate).to_have_text("0")
            await taken(page, name, folder, scheme)
        await chatted(page, url)
        await taken(page, "chat", folder, scheme)
        stack.engine.hang_at = len(stack.engine.calls) + 6
        stack.engine.let_go.clear()
        await read_log(page, url)
        await taken(page, "read-new", folder, scheme)
        await page.get_by_role("button", name="Start reading").click()
        await expect(page.get_by_role("article", name="Chunk 5", exact=True)).to_be_visible()
        await taken(page, "read-live", folder, scheme)
        stack.engine.let_go.set()
        await expect(page.get_by_text("Done", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Show place").first.click()
        await expect(page.locator("mark.is-chosen")).to_be_in_viewport()
        await taken(page, "read", folder, scheme)


async def main(folder: Path) -> None:
    """Both themes."""
    redis = RedisServer.start()
    try:
        with tempfile.TemporaryDirectory() as data:
            async with console_stack(redis.url, Path(data), answer, prices={"m": (0.1, 0.4)}) as stack:
                url = stack.gateway.url
                addresses = await prepared(stack, url)
                for dark in (False, True):
                    await all_pages(stack, url, addresses, folder, dark=dark)
    finally:
        redis.stop()


if __name__ == "__main__":
    chosen = next((Path(argument) for argument in sys.argv[1:] if argument != "--png"), FOLDER)
    chosen.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(chosen))
