"""The page Operate in a real browser, on the real gateway and store."""

from pathlib import Path

from playwright.async_api import expect

from tests.console.browser import browsing
from tests.console.scripted import HOSTILE
from tests.console.stack import console_stack


async def test_a_policy_is_set_kept_and_removed(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack:
        path = "/v1/admin/memory-policy"
        body = {"categories": [{"name": "home"}]}
        async with stack.gateway.http.put(stack.gateway.url + path, json=body) as answer:
            assert answer.status == 200
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/operate?tab=policy")
            await page.get_by_label("Instructions to the memory writer").fill(HOSTILE)
            await page.get_by_label("Never keep sentences with").fill("salary\n\ndiagnosis")
            await page.get_by_role("button", name="Save").click()
            await page.get_by_text("In force for the tenant").click()
            await expect(page.get_by_text('"diagnosis"')).to_be_visible()
            policy = (await stack.gateway.get(path)).json["policy"]
            assert (policy["instructions"], policy["never"]) == (HOSTILE.strip(), ["salary", "diagnosis"])
            assert [category["name"] for category in policy["categories"]] == ["home"]
            await page.reload()
            await expect(page.get_by_label("Instructions to the memory writer")).to_have_value(HOSTILE.strip())
            await page.get_by_role("button", name="Remove the policy").click()
            await expect(page.get_by_label("Instructions to the memory writer")).to_have_value("")
        assert (await stack.gateway.get(path)).json["policy"] is None
