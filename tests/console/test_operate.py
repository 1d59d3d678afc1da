"""The page Operate in a real browser, on the real gateway and store."""

from pathlib import Path

from playwright.async_api import expect

from memloop.wire.memory import Namespace
from tests.console.browser import browsing, only_text
from tests.console.scripted import HOSTILE
from tests.console.stack import console_stack
from tests.gateway.api_rig import configured
from tests.gateway.rig import leased

_HAS_LINE = """() => {
  const canvas = document.querySelector("[aria-label='Cost of each model by the day'] canvas");
  const swatch = document.querySelector(".swatch");
  if (!canvas || !swatch) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colour = getComputedStyle(swatch).backgroundColor.match(/\\d+/g).map(Number);
  const near = (at) => colour.every((part, index) => Math.abs(data[at + index] - part) < 10);
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200 && near(at)) return true;
  return false;
}"""
"""Whether the chart holds a line in the colour of the legend's first entry."""


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


async def test_markup_in_a_keys_name_is_shown_as_text(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack, browsing(stack.gateway.url) as page:
        for name in (HOSTILE[:60], HOSTILE[38:]):
            assert (await stack.gateway.post("/v1/admin/keys", {"name": name})).status == 201
        await page.goto(stack.gateway.url + "/console/operate?tab=keys")
        row = page.get_by_role("listitem", name=HOSTILE[:60])
        await expect(row).to_contain_text(HOSTILE[:60])
        await expect(page.get_by_role("listitem", name=HOSTILE[38:])).to_be_visible()
        await row.get_by_role("button", name="Revoke").click()
        await expect(page.get_by_role("dialog")).to_contain_text(HOSTILE[:60])
        assert await only_text(page)


async def test_a_failed_write_is_put_back_from_the_dead_letters(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack, browsing(stack.gateway.url) as page:
        await stack.worker.aclose()
        said = {"messages": [{"role": "user", "content": "I live in Leeds."}], "user_id": "ann"}
        event_id = (await stack.gateway.post("/v1/memory/add", said)).json["event_id"]
        queue = stack.gateway.memory.queue
        lease = await leased(queue, Namespace(tenant="local", user_id="ann"))
        event = (await queue.events.get("local", event_id)).model_copy(update={"status": "failed", "error": "full"})
        record = event.model_dump_json()
        await queue.lanes.finish(lease, status="failed", record=record, keep_ms=None, dead="full", keeps_work=True)
        await stack.another_worker()
        await page.goto(stack.gateway.url + "/console/operate?tab=jobs")
        await page.get_by_role("region", name="Dead letters").get_by_role("button", name="Put back").click()
        await expect(page.get_by_text("No dead letters")).to_be_visible()
        await page.goto(stack.gateway.url + "/console/memories?user=ann")
        await expect(page.get_by_role("listitem").filter(has_text="Ann lives in Leeds.")).to_be_visible()


async def test_a_key_is_made_rotated_and_revoked(redis_url: str, tmp_path: Path) -> None:
    keys = configured("ops", "operator-key", "scopes=admin")
    name = "billing service"
    async with console_stack(redis_url, tmp_path, api_keys=keys) as stack, browsing(stack.gateway.url) as page:
        await page.goto(stack.gateway.url + "/console/")
        await page.evaluate("sessionStorage.setItem('memloop.key', 'operator-key')")
        await page.goto(stack.gateway.url + "/console/operate?tab=keys&tenant=ops")
        await page.get_by_role("button", name="New key").click()
        await page.get_by_role("dialog").get_by_label("Name").fill(name)
        await page.get_by_role("dialog").get_by_role("button", name="Make").click()
        secret = page.get_by_label("Secret", exact=True)
        first = await secret.input_value()
        await page.get_by_role("dialog").get_by_role("button", name="I have it").click()
        row = page.get_by_role("listitem", name=name)
        await row.get_by_role("button", name="Rotate").click()
        await expect(page.get_by_role("dialog")).to_contain_text(name)
        await page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
        await expect(secret).not_to_have_value(first)
        await page.get_by_role("dialog").get_by_role("button", name="I have it").click()
        await row.get_by_role("button", name="Revoke").click()
        await expect(page.get_by_role("dialog")).to_contain_text(name)
        await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        await expect(page.get_by_text("No keys yet")).to_be_visible()
        await page.get_by_role("button", name="Audit", exact=True).click()
        await expect(page.get_by_role("list", name="Audit entries")).to_contain_text("Key revoked")


async def test_a_tenants_tokens_and_their_cost_are_drawn_over_time(redis_url: str, tmp_path: Path) -> None:
    keys = f"{configured('ops', 'operator-key', 'scopes=admin')},{configured('acme', 'acme-key')}"
    async with console_stack(redis_url, tmp_path, api_keys=keys, prices={"m": (1000.0, 5000.0)}) as stack:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
        headers = {"Authorization": "Bearer acme-key"}
        assert (await stack.gateway.post("/v1/chat/completions", body, headers=headers)).status == 200
        async with browsing(stack.gateway.url) as page:
            await page.goto(stack.gateway.url + "/console/")
            await page.evaluate("sessionStorage.setItem('memloop.key', 'operator-key')")
            await page.goto(stack.gateway.url + "/console/operate?tab=usage")
            card = page.get_by_role("region", name="Tokens and cost over time")
            await expect(card.get_by_text("Nothing was spent")).to_be_visible()
            await page.goto(stack.gateway.url + "/console/operate?tab=usage&tenant=acme")
            spent = card.get_by_role("list", name="Spent by model").get_by_role("listitem")
            await expect(spent).to_contain_text("1 call · 10 tokens in · 2 tokens out · cost 0.02")
            await expect(
                card.get_by_role("img", name="Tokens of each model by the hour").locator("canvas")
            ).to_be_visible()
            await card.get_by_role("button", name="35 days").click()
            await card.get_by_role("button", name="Cost").click()
            await expect(
                card.get_by_role("img", name="Cost of each model by the day").locator("canvas")
            ).to_be_visible()
            await expect(card.locator("figcaption")).to_contain_text("0.02")
            await page.wait_for_function(_HAS_LINE)


async def test_the_health_and_the_queues_are_shown(redis_url: str, tmp_path: Path) -> None:
    async with console_stack(redis_url, tmp_path) as stack, browsing(stack.gateway.url) as page:
        await page.goto(stack.gateway.url + "/console/operate")
        await expect(page.get_by_role("region", name="Dependencies")).to_contain_text("store")
        await expect(page.get_by_role("region", name="Limits in use")).to_contain_text("Requests of users now")
        await page.get_by_role("button", name="Jobs").click()
        await expect(page.get_by_role("region", name="Queues")).to_contain_text("Background reads")
        await expect(page.get_by_text("No dead letters")).to_be_visible()
