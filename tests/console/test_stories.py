"""The two stories of ``memloop demo`` in a real browser, on the local stack with the tiny model."""

from collections.abc import Iterator

import pytest
from playwright.async_api import expect

from tests.console.browser import browsing
from tests.console.reading import DROP
from tests.stack.local_stack import LocalStack

FACT = "The locker code of the user is 482."
PROSE = "The whale swam on, and the ship went after it through the night. " * 40
VAULT = "The vault code of Marta is 731."


@pytest.fixture(scope="module")
def local_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a stack that ``memloop up`` started."""
    started = LocalStack(tmp_path_factory.mktemp("home"), MEMLOOP_MODEL="memloop-tiny")
    result = started.up()
    assert result.returncode == 0, result.stdout + result.stderr
    running = started.home.running()
    assert running
    yield running.url
    started.memloop("down")


async def test_a_fact_told_in_a_chat_arrives_is_found_and_shows_its_history(local_url: str) -> None:
    async with browsing(local_url) as page:
        await page.goto(local_url + "/console/chat?user=ann")
        await page.get_by_label("Message").fill("My locker code is 482.")
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("log").get_by_role("link", name=FACT)).to_be_visible()
        await page.get_by_role("link", name="Decisions", exact=True).click()
        await expect(page.get_by_role("article").filter(has_text=FACT)).to_contain_text("added")
        await page.get_by_role("link", name="Memories").click()
        await page.keyboard.press("/")
        await page.keyboard.type("locker code")
        await page.get_by_role("listitem").filter(has_text=FACT).get_by_role("button").click()
        await expect(page.get_by_role("region", name="History")).to_contain_text("My locker code is 482.")


async def test_a_dropped_document_is_answered_from_and_its_evidence_marked(local_url: str) -> None:
    async with browsing(local_url) as page:
        await page.goto(local_url + "/console/read")
        await expect(page.get_by_role("heading", name="Read a document")).to_be_visible()
        await page.evaluate(DROP, ["ship.txt", f"{PROSE}{VAULT} {PROSE}"])
        await expect(page.get_by_role("status").filter(has_text="ship.txt")).to_contain_text("Ready")
        await page.get_by_label("Question").fill("What is the vault code of Marta?")
        await page.get_by_role("button", name="Start reading").click()
        await expect(page.get_by_role("region", name="Answer")).to_contain_text("731")
        await expect(page.get_by_text("Done", exact=True)).to_be_visible()
        marked = page.get_by_role("list", name="Document").locator("mark")
        await expect(marked.filter(has_text="731").first).to_be_visible()
        await page.get_by_role("button", name="Memory", exact=True).click()
        await expect(page.get_by_role("article").filter(has_text="731").first).to_be_visible()
