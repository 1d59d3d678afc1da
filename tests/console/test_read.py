"""The page Read in a real browser, on the real gateway, worker and files; the engine follows a script."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.console.browser import browsing, only_text, overflows, violations
from tests.console.reading import DROP, FACT, QUESTION, answer, document
from tests.console.scripted import HOSTILE
from tests.console.stack import Stack, console_stack
from tests.fakes.job_engine import Body, Reply

FILE = "harbour log.txt"


async def opened(page: Page, stack: Stack) -> None:
    await page.goto(stack.gateway.url + "/console/read")
    await expect(page.get_by_role("heading", name="Read a document")).to_be_visible()


async def dropped(page: Page, text: str, name: str = FILE) -> None:
    await page.evaluate(DROP, [name, text])
    await expect(page.get_by_role("status").filter(has_text=name)).to_contain_text("Ready")


async def started(page: Page, *, chunk_tokens: int) -> None:
    await page.get_by_label("Question").fill(QUESTION)
    await page.get_by_label("Where it runs").select_option("background")
    await page.get_by_text("More options").click()
    await page.get_by_label("Tokens of a chunk").fill(str(chunk_tokens))
    await expect(page.get_by_label("Cost at most")).to_contain_text("≤")
    await page.get_by_role("button", name="Start reading").click()
    await page.wait_for_url("**/read?*read=lr_*")


async def read_to_its_end(page: Page, stack: Stack, text: str, name: str = FILE) -> None:
    await opened(page, stack)
    await dropped(page, text, name)
    await started(page, chunk_tokens=200)
    await expect(page.get_by_text("Done", exact=True)).to_be_visible()


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


async def test_a_dropped_document_is_read_live_and_its_evidence_marked(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path, answer) as stack, browsing(stack.gateway.url) as page:
        stack.engine.hang_at = 3
        await opened(page, stack)
        await dropped(page, document(60))
        await started(page, chunk_tokens=200)
        await expect(page.get_by_role("article", name="Chunk 2", exact=True)).to_contain_text(
            "The text went to paragraph"
        )
        stack.engine.let_go.set()
        await expect(page.get_by_text("Done", exact=True)).to_be_visible()
        text = page.get_by_role("list", name="Document")
        await expect(text.locator("mark").first).to_have_text(FACT)
        statements = page.get_by_role("region", name="Answer").get_by_role("listitem")
        painted = statements.filter(has_text="It was painted green in spring.")
        await expect(painted).to_contain_text("No support found")
        await expect(page.locator(".answer .is-unsupported")).to_have_text("It was painted green in spring.")
        await statements.filter(has_text=FACT).get_by_role("button", name="Show place").last.click()
        await expect(text.locator("mark.is-chosen")).to_have_text(FACT)
        await page.goto(page.url)
        await expect(text.locator("mark.is-chosen")).to_be_in_viewport()


async def test_a_read_whose_worker_ends_is_resumed_by_another_in_view(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path, answer) as stack, browsing(stack.gateway.url) as page:
        stack.engine.hang_at = 4
        await opened(page, stack)
        await dropped(page, document(60))
        await started(page, chunk_tokens=200)
        await expect(page.get_by_role("article", name="Chunk 3", exact=True)).to_be_visible()
        await stack.engine.hanging.wait()
        await stack.worker.aclose()
        await expect(page.get_by_role("button", name="Cancel the read")).to_be_visible()
        stack.engine.let_go.set()
        await stack.another_worker()
        await expect(page.get_by_text("Done", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Memory", exact=True).click()
        read = (await stack.gateway.get("/v1/long-read")).json["data"][0]
        await expect(page.get_by_text(f"{read['progress']['chunks_total']} steps")).to_be_visible()


async def test_a_slow_engine_leaves_a_progress_and_the_page_in_use(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path, answer) as stack, browsing(stack.gateway.url) as page:
        stack.engine.hang_at = 2
        await opened(page, stack)
        await dropped(page, document(60))
        await started(page, chunk_tokens=200)
        progress = page.get_by_role("progressbar", name="Chunks read in this pass")
        await expect(progress).to_have_attribute("value", "1")
        await expect(page.get_by_text("Reading", exact=True)).to_be_visible()
        await page.get_by_role("link", name="Memories").click()
        await expect(page.get_by_text("No memories yet")).to_be_visible()
        await page.go_back()
        await expect(progress).to_have_attribute("value", "1")
        stack.engine.let_go.set()
        await expect(page.get_by_text("Done", exact=True)).to_be_visible()


@pytest.mark.parametrize("width", [1280, 360])
async def test_an_open_read_has_no_serious_fault_and_fits(redis_url: str, tmp_path: Path, width: int) -> None:
    async with console_stack(redis_url, tmp_path, answer) as stack, browsing(stack.gateway.url, width=width) as page:
        await read_to_its_end(page, stack, document(60))
        found: dict[str, object] = {}
        for tab, shown in (("Document", "list"), ("Memory", "article")):
            await page.get_by_role("button", name=tab, exact=True).click()
            await expect(
                page.get_by_role(shown).filter(has_text="paragraph" if tab == "Memory" else FACT).first
            ).to_be_visible()
            found[tab] = await violations(page), await overflows(page)
        assert found == {"Document": ([], False), "Memory": ([], False)}


async def test_markup_in_a_document_is_shown_as_text(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path, answer) as stack, browsing(stack.gateway.url) as page:
        await read_to_its_end(page, stack, f"{HOSTILE}\n\n{document(20)}")
        await page.get_by_role("button", name="Document", exact=True).click()
        await expect(page.get_by_role("list", name="Document")).to_contain_text(HOSTILE)
        assert await only_text(page)


async def test_markup_in_a_files_name_is_shown_as_text(redis_url: str, tmp_path: Path) -> None:
    name = "<img src=x onerror=window.hacked=1>.txt"
    async with console_stack(redis_url, tmp_path, answer) as stack, browsing(stack.gateway.url) as page:
        await read_to_its_end(page, stack, document(20), name)
        await expect(page.get_by_text(name)).to_be_visible()
        assert await only_text(page)
        await page.get_by_role("link", name="All reads").click()
        await expect(page.get_by_role("list", name="Reads").get_by_role("listitem").first).to_contain_text(name)
        assert await only_text(page)


async def test_markup_in_what_the_model_writes_is_shown_as_text(redis_url: str, tmp_path: Path) -> None:
    def hostile(body: Body) -> Reply:
        reply = str(answer(body))
        return reply.replace("{", f"{{{HOSTILE} ", 1) if reply.startswith("\\boxed") else f"{reply} {HOSTILE}"

    async with console_stack(redis_url, tmp_path, hostile) as stack, browsing(stack.gateway.url) as page:
        await read_to_its_end(page, stack, document(20))
        await expect(page.get_by_role("region", name="Answer")).to_contain_text(HOSTILE)
        assert await only_text(page)
        await page.get_by_role("button", name="Memory", exact=True).click()
        await expect(page.get_by_role("article").first).to_contain_text(HOSTILE)
        assert await only_text(page)
