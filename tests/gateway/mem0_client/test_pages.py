"""mem0's pages: their links are addresses that any HTTP client can follow."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mem0.client.types import GetAllMemoryOptions  # pyright: ignore[reportMissingTypeStubs]

from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.mem0_client.drop_in import DropIn, drop_in

KEY = {"Authorization": f"Token {ALICE_KEY}"}


async def stored(it: DropIn, count: int) -> None:
    client = await it.alice("async")
    for number in range(count):
        await client.added(f"{number}")


async def followed(it: DropIn, method: str, url: str, *, headers: Mapping[str, str] = KEY, **more: Any) -> Any:
    async with it.gateway.http.request(method, url, headers=headers, **more) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_pages_of_the_client(it: DropIn) -> None:
    await stored(it, 5)
    client = await it.alice("sync")
    pages = [
        await client.call("get_all", GetAllMemoryOptions(filters={"user_id": "ann"}, page=page, page_size=2))
        for page in (1, 2, 3, 4)
    ]
    texts = [[one["memory"] for one in page["results"]] for page in pages]
    assert texts == [["4", "3"], ["2", "1"], ["0"], []]
    assert {page["count"] for page in pages} == {5}
    assert [page["next"] for page in pages][2:] == [None, None]
    assert pages[0]["previous"] is None


async def test_the_links_of_a_listing_lead_to_its_neighbours(it: DropIn) -> None:
    await stored(it, 3)
    asked: dict[str, Any] = {"json": {"filters": {"user_id": "ann"}}}
    first = await followed(it, "POST", f"{it.gateway.url}/v3/memories/?page_size=1", **asked)
    second = await followed(it, "POST", first["next"], **asked)
    back = await followed(it, "POST", second["previous"], **asked)
    assert [page["results"][0]["memory"] for page in (first, second, back)] == ["2", "1", "2"]


async def test_the_links_of_events_keep_the_user(it: DropIn) -> None:
    await stored(it, 2)
    first = await followed(it, "GET", f"{it.gateway.url}/v1/events/?user_id=ann&page_size=1")
    second = await followed(it, "GET", first["next"])
    ids = {page["results"][0]["id"] for page in (first, second)}
    assert len(ids) == 2


async def test_links_have_the_name_and_scheme_by_which_the_client_came(it: DropIn) -> None:
    await stored(it, 2)
    behind_tls = {**KEY, "Host": "memory.example", "X-Forwarded-Proto": "https"}
    asked: dict[str, Any] = {"json": {"filters": {"user_id": "ann"}}, "headers": behind_tls}
    page = await followed(it, "POST", f"{it.gateway.url}/v3/memories/?page_size=1", **asked)
    assert page["next"] == "https://memory.example/v3/memories/?page_size=1&page=2"


async def test_a_link_names_no_address_behind_a_proxy_that_is_not_trusted(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.1")
    async with drop_in(redis_url, tmp_path) as it:
        await stored(it, 2)
        asked: dict[str, Any] = {
            "json": {"filters": {"user_id": "ann"}},
            "headers": {**KEY, "X-Forwarded-Proto": "https"},
        }
        page = await followed(it, "POST", f"{it.gateway.url}/v3/memories/?page_size=1", **asked)
    assert page["next"] == "/v3/memories/?page_size=1&page=2"
