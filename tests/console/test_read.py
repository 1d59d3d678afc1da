"""The page Read in a real browser, on the real gateway, worker and files; the engine follows a script."""

from pathlib import Path

from playwright.async_api import Page, expect

from tests.console.browser import browsing
from tests.console.reading import QUESTION, answer, document
from tests.console.stack import Stack, console_stack

FILE = "harbour log.txt"
DROP = """([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name, { type: "text/plain" }));
  const place = [...document.querySelectorAll("label")].find((label) => label.textContent.includes("Drop a file"));
  place.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


async def opened(page: Page, stack: Stack) -> None:
    await page.goto(stack.gateway.url + "/console/read")
    await expect(page.get_by_role("heading", name="Read a document")).to_be_visible()


async def dropped(page: Page, text: str) -> None:
    await page.evaluate(DROP, [FILE, text])
    await expect(page.get_by_role("status").filter(has_text=FILE)).to_contain_text("Ready")


async def started(page: Page, *, chunk_tokens: int) -> None:
    await page.get_by_label("Question").fill(QUESTION)
    await page.get_by_label("Where it runs").select_option("background")
    await page.get_by_text("More options").click()
    await page.get_by_label("Tokens of a chunk").fill(str(chunk_tokens))
    await expect(page.get_by_label("Cost at most")).to_contain_text("≤")
    await page.get_by_role("button", name="Start reading").click()
    await page.wait_for_url("**/read?*read=lr_*")


async def test_a_tab_reloaded_in_mid_read_goes_on_with_every_chunk(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path, answer) as stack, browsing(stack.gateway.url) as page:
        stack.engine.hang_at = 4
        await opened(page, stack)
        await dropped(page, document(60))
        await started(page, chunk_tokens=200)
        await expect(page.get_by_role("article", name="Chunk 3", exact=True)).to_be_visible()
        assert stack.engine.hanging.is_set() or await stack.engine.hanging.wait()
        await page.reload()
        await expect(page.get_by_role("article", name="Chunk 3", exact=True)).to_be_visible()
        await expect(page.get_by_role("progressbar", name="Chunks read in this pass")).to_be_visible()
        stack.engine.let_go.set()
        await expect(page.get_by_text("Done", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Memory", exact=True).click()
        read = (await stack.gateway.get("/v1/long-read")).json["data"][0]
        await expect(page.get_by_text(f"{read['progress']['chunks_total']} steps")).to_be_visible()


async def test_a_cancelled_read_stops_and_stays_in_the_history(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path, answer) as stack, browsing(stack.gateway.url) as page:
        stack.engine.hang_at = 3
        await opened(page, stack)
        await dropped(page, document(60))
        await started(page, chunk_tokens=200)
        await expect(page.get_by_role("article", name="Chunk 2", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Cancel the read").click()
        await expect(page.get_by_text("Cancelled", exact=True)).to_be_visible()
        await page.get_by_role("link", name="All reads").click()
        await expect(page.get_by_role("list", name="Reads").get_by_role("listitem").first).to_contain_text("Cancelled")
        await page.get_by_role("link", name=QUESTION).click()
        await expect(page.get_by_role("article", name="Chunk 2", exact=True)).to_be_visible()
        stack.engine.let_go.set()
