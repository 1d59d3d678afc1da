"""The page Memories in a real browser, on the real gateway and store."""

from pathlib import Path

from playwright.async_api import expect

from tests.console.browser import browsing
from tests.console.scripted import HOSTILE
from tests.console.stack import console_stack


async def test_a_fact_told_is_searched_and_its_history_opened(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell("I live in Leeds.")
        await stack.tell("I live in York.")
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console")
            await page.get_by_role("button", name="ann").click()
            await page.keyboard.press("/")
            await page.keyboard.type("Where does Ann live?")
            hit = page.get_by_role("listitem").filter(has_text="Ann lives in York.")
            await expect(hit).to_contain_text("meaning")
            await expect(hit).to_contain_text("rank 1")
            await hit.get_by_role("button").click()
            history = page.get_by_role("region", name="History")
            await expect(history).to_contain_text("Ann lives in Leeds.")
            await expect(history).to_contain_text("changed fact")
            await expect(history).to_contain_text("I live in York.")
            await expect(history).to_contain_text("a lasting fact")
            address = page.url
            await page.goto(address)
            await expect(page.get_by_role("region", name="History")).to_contain_text("Version 2")


async def test_a_memory_is_edited_deleted_and_recovered(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell("I live in Leeds.")
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/memories?user=ann")
            await page.get_by_role("listitem").filter(has_text="Ann lives in Leeds.").get_by_role("button").click()
            await page.get_by_role("button", name="Edit").click()
            await page.get_by_label("The memory's text").fill("Ann lives in Hull.")
            await page.get_by_role("button", name="Save a new version").click()
            detail = page.get_by_role("complementary", name="The chosen memory")
            await expect(detail).to_contain_text("Version 2")
            await expect(detail.locator(".detail-text")).to_have_text("Ann lives in Hull.")
            await detail.get_by_role("button", name="Delete").click()
            await detail.get_by_role("button", name="Recover").click()
            await expect(detail.get_by_role("button", name="Delete")).to_be_visible()


async def test_a_memory_called_wrong_leaves_searches_until_that_is_taken_back(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell("I live in Leeds.")
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/memories?user=ann")
            await page.get_by_role("listitem").filter(has_text="Ann lives in Leeds.").get_by_role("button").click()
            wrong = page.get_by_role("group", name="Feedback").get_by_role("button", name="Wrong")
            await wrong.click()
            await expect(wrong).to_have_attribute("aria-pressed", "true")
            asked = {"user_id": "ann", "query": "Where does Ann live?"}
            assert (await stack.gateway.post("/v1/memory/search", asked)).json["results"] == []
            await wrong.click()
            await expect(wrong).to_have_attribute("aria-pressed", "false")
            assert len((await stack.gateway.post("/v1/memory/search", asked)).json["results"]) == 1


async def test_erasing_a_user_leaves_a_receipt_and_nothing_else(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell("I live in Leeds.")
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/memories?user=ann")
            await page.get_by_role("button", name="Erase …").click()
            erase = page.get_by_role("button", name="Erase for good")
            await expect(erase).to_be_disabled()
            await page.get_by_label("Type ann to confirm").fill("ann")
            await erase.click()
            await expect(page.get_by_role("dialog")).to_contain_text("receipt")
            await page.get_by_role("button", name="Done").click()
            await expect(page.get_by_text("Nothing is remembered")).to_be_visible()
        assert (await stack.gateway.get("/v1/memory?user_id=ann")).json["items"] == []


async def test_an_export_is_imported_after_an_erasure(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path / "stack") as stack:
        await stack.tell("I live in Leeds.")
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/memories?user=ann")
            async with page.expect_download() as download:
                await page.get_by_role("button", name="Export").click()
            file = tmp_path / "ann.jsonl"
            await (await download.value).save_as(file)
            await stack.gateway.http.delete(stack.gateway.url + "/v1/memory?user_id=ann")
            await page.get_by_role("button", name="Import").click()
            await page.get_by_label("File (JSON lines)").set_input_files(file)
            await page.get_by_role("dialog").get_by_role("button", name="Import").click()
            await expect(page.get_by_role("dialog")).to_contain_text("imported")
            await page.get_by_role("button", name="Done").click()
            await expect(page.get_by_role("listitem").filter(has_text="Ann lives in Leeds.")).to_be_visible()


async def test_hostile_texts_are_shown_as_text(redis_url: str, tmp_path: Path) -> None:
    user = "<b onmouseover=window.hacked=1>eve</b>"
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell(HOSTILE, user=user, metadata={HOSTILE[:60]: HOSTILE})
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/memories")
            await page.get_by_role("button", name=user).click()
            await page.get_by_role("listitem").filter(has_text=HOSTILE).first.get_by_role("button").click()
            await expect(page.get_by_role("region", name="History")).to_contain_text(HOSTILE)
            await page.get_by_role("link", name="Open it").click()
            await expect(page.get_by_role("article")).to_contain_text(HOSTILE)
            assert await page.evaluate("window.hacked") is None
            assert await page.locator("main img, main script, main b").count() == 0


async def test_turns_that_wait_for_context_are_shown_and_settled(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell("I was about to")
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/memories?user=ann")
            await expect(page.get_by_text("waits for more context")).to_be_visible()
            await expect(page.get_by_text("the thought is not finished")).to_be_visible()
            async with page.expect_response("**/v1/memory/buffers/flush") as response:
                await page.get_by_role("button", name="Settle now").click()
            assert (await response.value).status == 202
