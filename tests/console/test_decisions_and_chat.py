"""The pages Decisions and Chat in a real browser."""

from pathlib import Path

from playwright.async_api import expect

from tests.console.browser import browsing, only_text
from tests.console.scripted import HOSTILE
from tests.console.scripted import answer as scripted
from tests.console.stack import console_stack
from tests.fakes.job_engine import Body, Reply


async def test_a_write_is_seen_arriving_with_its_reason(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack, browsing(stack.gateway.url) as page:
        await page.goto(stack.gateway.url + "/console/decisions?user=ann")
        await expect(page.get_by_text("No writes yet")).to_be_visible()
        await stack.tell("I live in Leeds.")
        write = page.get_by_role("article").filter(has_text="Ann lives in Leeds.")
        await expect(write).to_contain_text("added")
        await expect(write).to_contain_text("12 tokens · 1 call")
        await write.get_by_role("button").click()
        await expect(write).to_contain_text("The user states a fact that lasts")
        await write.get_by_role("link", name="Ann lives in Leeds.").click()
        await expect(page.get_by_role("region", name="History")).to_contain_text("new fact")


async def test_a_write_that_was_kept_shows_the_reply_and_is_decided_again(redis_url: str, tmp_path: Path) -> None:
    mended: list[bool] = []

    def answer(body: Body) -> Reply:
        return scripted(body) if mended else "It is indeed."

    async with console_stack(redis_url, tmp_path, answer) as stack:
        await stack.tell("I live in Leeds.")
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/decisions?user=ann&outcome=kept")
            await page.get_by_role("article").get_by_role("button").first.click()
            write = page.get_by_role("article")
            await expect(write).to_contain_text("The writer replied: It is indeed.")
            await expect(write.get_by_role("link", name="I live in Leeds.")).to_be_visible()
            mended.append(True)
            await page.get_by_role("button", name="Decide again").click()
            await page.get_by_role("group", name="Show").get_by_role("button", name="All").click()
            await expect(page.get_by_role("article").filter(has_text="Ann lives in Leeds.")).to_contain_text("added")


async def test_a_chat_shows_what_was_recalled_and_what_was_stored(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell("I live in Leeds.")
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/chat?user=ann")
            await page.get_by_label("Message").fill("I like green tea")
            await page.get_by_role("button", name="Send").click()
            chat = page.get_by_role("log")
            await expect(chat.get_by_role("link", name="Ann lives in Leeds.")).to_be_visible()
            await expect(chat.get_by_role("link", name="Ann likes green tea.")).to_be_visible()
            await page.get_by_role("link", name="Memories").click()
            await page.get_by_role("link", name="Chat", exact=True).click()
            await expect(chat).to_contain_text("You wrote:")


async def test_a_chat_without_memory_recalls_and_stores_nothing(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell("I live in Leeds.")
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/chat?user=ann&memory=off")
            await page.get_by_label("Message").fill("I like green tea")
            await page.get_by_role("button", name="Send").click()
            await expect(page.get_by_role("log")).to_contain_text("No memory was used.")
        assert len((await stack.gateway.get("/v1/memory/events?user_id=ann")).json["events"]) == 1


async def test_a_models_markup_is_shown_as_text(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack, browsing(stack.gateway.url) as page:
        await page.goto(stack.gateway.url + "/console/chat?user=ann")
        await page.get_by_label("Message").fill(HOSTILE)
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("log")).to_contain_text(f"You wrote: {HOSTILE}")
        assert await only_text(page)
