"""What holds on every page: accessibility, small screens, keys, prefixes, a dead store."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.console.browser import browsing, overflows, violations
from tests.console.prefix_proxy import below
from tests.console.stack import console_stack
from tests.gateway.api_rig import configured

PAGES = ("memories", "memories?user=ann", "memories?user=ann&q=Leeds", "decisions?user=ann", "chat?user=ann", "read")
LACKING = {
    "memories": "memory:read",
    "memories?user=ann": "memory:read",
    "decisions?user=ann": "memory:read",
    "read": "long-read",
    "operate?tab=keys": "admin",
    "operate?tab=audit": "admin",
}
"""What a key for chats lacks on each page."""
OPERATE = tuple(f"operate?tab={tab}" for tab in ("health", "usage", "jobs", "keys", "policy", "audit"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
async def test_no_page_has_a_serious_fault_or_overflows(
    redis_url: str, tmp_path: Path, width: int, *, dark: bool
) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell("I live in Leeds.")
        item = (await stack.gateway.get("/v1/memory?user_id=ann")).json["items"][0]["id"]
        event = (await stack.gateway.get("/v1/memory/events?user_id=ann")).json["events"][0]["event_id"]
        paths = (*PAGES, *OPERATE, f"memories?user=ann&item={item}", f"decisions?user=ann&event={event}")
        async with browsing(stack.gateway.url, width=width, dark=dark) as page:
            found: dict[str, object] = {}
            for path in paths:
                await page.goto(f"{stack.gateway.url}/console/{path}")
                await expect(page.get_by_role("heading", level=1)).to_be_visible()
                await expect(page.get_by_label("Loading")).to_have_count(0)
                found[path] = await violations(page), await overflows(page)
        assert found == {path: ([], False) for path in paths}


async def test_below_a_prefix_the_pages_their_links_and_the_api_work(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack, below("/team/memloop", stack.gateway.url) as url:
        await stack.tell("I live in Leeds.")
        async with browsing(url) as page:
            await page.goto(url + "/console")
            await page.get_by_role("button", name="ann").click()
            await page.get_by_role("listitem").filter(has_text="Ann lives in Leeds.").get_by_role("button").click()
            assert page.url.startswith(url + "/console/memories?")
            await page.goto(page.url)
            await expect(page.get_by_role("region", name="History")).to_contain_text("new fact")
            await page.get_by_role("link", name="Decisions", exact=True).click()
            await expect(page.get_by_role("article")).to_contain_text("added")
            await page.goto(url + "/docs")
            await expect(page.get_by_text("/v1/memory/search")).to_be_visible()


async def test_the_page_of_the_api_works_without_another_host(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack, browsing(stack.gateway.url) as page:
        await page.goto(stack.gateway.url + "/docs")
        await expect(page.get_by_text("/v1/memory/search")).to_be_visible()


async def test_a_key_is_asked_for_and_stays_in_the_tab(redis_url: str, tmp_path: Path) -> None:
    keys = configured("local", "ann-key")
    async with console_stack(redis_url, tmp_path, api_keys=keys) as stack, browsing(stack.gateway.url) as page:
        await page.goto(stack.gateway.url + "/console/memories")
        await page.get_by_role("button", name="Enter an API key").click()
        await page.get_by_label("Key", exact=True).fill("ann-key")
        await page.get_by_role("button", name="Use this key").click()
        await expect(page.get_by_text("No memories yet")).to_be_visible()
        assert "ann-key" not in page.url
        assert await page.evaluate("[JSON.stringify(localStorage), document.cookie]") == ["{}", ""]
        await page.reload()
        await expect(page.get_by_text("No memories yet")).to_be_visible()


async def test_a_key_without_the_scope_is_told_which_it_lacks(redis_url: str, tmp_path: Path) -> None:
    keys = configured("local", "chat-key", "scopes=chat")
    async with console_stack(redis_url, tmp_path, api_keys=keys) as stack, browsing(stack.gateway.url) as page:
        await page.goto(stack.gateway.url + "/console/")
        await page.evaluate("sessionStorage.setItem('memloop.key', 'chat-key')")
        for path, scope in LACKING.items():
            await page.goto(f"{stack.gateway.url}/console/{path}")
            await expect(page.get_by_role("alert").first).to_contain_text(scope)


async def test_a_key_without_the_scope_for_chats_is_told_so_beside_its_message(redis_url: str, tmp_path: Path) -> None:
    keys = configured("local", "reader-key", "scopes=memory:read")
    async with console_stack(redis_url, tmp_path, api_keys=keys) as stack, browsing(stack.gateway.url) as page:
        await page.goto(stack.gateway.url + "/console/")
        await page.evaluate("sessionStorage.setItem('memloop.key', 'reader-key')")
        await page.goto(stack.gateway.url + "/console/chat?user=ann&memory=off")
        await page.get_by_label("Message").fill("Hello")
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("log").get_by_role("alert")).to_contain_text("Missing scopes: chat")


async def test_a_dead_store_is_named_and_the_page_works_again_once_it_is_asked_again(
    redis_url: str, tmp_path: Path
) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        await stack.tell("I live in Leeds.")
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/memories?user=ann")
            await expect(page.get_by_text("Ann lives in Leeds.")).to_be_visible()
            await stack.store.aclose()
            await page.reload()
            await expect(page.get_by_role("alert").first).to_contain_text("Something is down")
            await expect(page.get_by_text("Down: store")).to_be_visible()
            await expect(page.get_by_role("button", name="Try again")).to_be_visible()


async def test_the_pages_work_by_the_keyboard_alone(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        for text in ("I live in Leeds.", "I like green tea"):
            await stack.tell(text)
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/memories?user=ann")
            await expect(page.get_by_text("Ann likes green tea.")).to_be_visible()
            await page.keyboard.press("j")
            first = page.url
            assert "item=" in first
            await page.keyboard.press("j")
            await page.wait_for_function("first => location.href !== first", arg=first)
            await page.keyboard.press("k")
            await page.wait_for_function("first => location.href === first", arg=first)
            await page.keyboard.press("Escape")
            await expect(page.get_by_text("Choose a memory")).to_be_visible()
