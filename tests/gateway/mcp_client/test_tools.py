"""The tools through the real MCP client: what they do, what they refuse, and who may not use them."""

import logging
from dataclasses import replace
from typing import cast

import pytest
from mcp import MCPError

from memloop_clients import StoreClient
from tests.gateway.api_rig import BOB_KEY
from tests.gateway.mcp_client.caller import ERAS, Era, caller
from tests.gateway.whole import Whole

NAMES = ["memory_add", "memory_search", "memory_list", "memory_get", "memory_update", "memory_delete", "long_read"]
NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize("era", ERAS)
async def test_a_memory_from_its_beginning_to_its_end(it: Whole, era: Era) -> None:
    async with caller(it.gateway.url, era=era) as client:
        tools = (await client.client.list_tools()).tools
        assert [tool.name for tool in tools] == NAMES
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)

        item_id = await client.added("Tea at five.", metadata={"n": 1}, agent_id="home")
        assert (await client.call("memory_get", id=item_id))["memory"] == "Tea at five."
        edited = await client.call("memory_update", id=item_id, memory="Tea at six.", if_version=1)
        assert (edited["version"], edited["metadata"]) == (2, {"n": 1})
        listed = await client.call("memory_list", user_id="ann", limit=1)
        assert [item["id"] for item in listed["items"]] == [item_id]
        assert (await client.call("memory_delete", id=item_id)) == {"id": item_id, "deleted": True}
        assert (await client.call("memory_list", user_id="ann"))["items"] == []


async def test_an_add_is_queued_or_waited_for(it: Whole) -> None:
    async with caller(it.gateway.url) as client:
        queued = await client.call("memory_add", text="I like green tea.", user_id="bob")
        assert queued["status"] == "queued"
        done = await client.call("memory_add", text="I like green tea.", user_id="ann", wait=True)
        assert (done["status"], done["memories"]) == ("completed", ["Ann drinks green tea."])


@pytest.mark.parametrize("era", ERAS)
async def test_a_failing_tool_returns_an_error_result(it: Whole, era: Era) -> None:
    async with caller(it.gateway.url, era=era) as client:
        item_id = await client.added("Tea at five.")
        wrong = {
            "a missing field": await client.refused("memory_search", query="tea"),
            "a wrong type": await client.refused("memory_list", user_id="ann", limit="many"),
            "an unknown field": await client.refused("memory_get", id=item_id, colour="red"),
            "no text": await client.refused("memory_add", text=" ", user_id="ann"),
            "a wrong filter": await client.refused(
                "memory_search", query="tea", user_id="ann", filters={"tags": {"like": "x"}}
            ),
            "an unknown memory": await client.refused("memory_get", id=NOBODY),
            "another version": await client.refused("memory_update", id=item_id, memory="Milk.", if_version=7),
            "no document": await client.refused("long_read", question="Where?"),
        }
        codes = {name: (error["code"], error.get("param")) for name, error in wrong.items()}
        assert codes == {
            "a missing field": ("validation_error", "user_id"),
            "a wrong type": ("validation_error", "limit"),
            "an unknown field": ("unknown_parameter", "colour"),
            "no text": ("empty_messages", "messages"),
            "a wrong filter": ("invalid_filter", "filters"),
            "an unknown memory": ("not_found", "id"),
            "another version": ("precondition_failed", None),
            "no document": ("validation_error", "document"),
        }
        with pytest.raises(MCPError, match="Unknown tool 'memory_steal'"):
            await client.client.call_tool("memory_steal", {})


NULLS = (None, "null", "None")


@pytest.mark.parametrize("null", NULLS, ids=["null", "a text", "Python's"])
async def test_a_null_leaves_a_memorys_field_as_it_is(it: Whole, null: str | None) -> None:
    async with caller(it.gateway.url) as client:
        item_id = await client.added("Tea at five.", metadata={"n": 1})
        end = "2030-01-01T00:00:00Z"
        before = await client.call("memory_update", id=item_id, tags=["drinks"], expires_at=end)
        absent = dict.fromkeys(("metadata", "tags", "expires_at", "if_version", "max_chars"), null)
        edited = await client.call("memory_update", id=item_id, memory="Tea at six.", **absent)
    kept = ("metadata", "tags", "expires_at")
    assert edited["memory"] == "Tea at six."
    assert [edited[name] for name in kept] == [before[name] for name in kept] == [{"n": 1}, ["drinks"], end]


async def test_a_null_is_an_argument_that_was_left_out_in_every_tool(it: Whole) -> None:
    async with caller(it.gateway.url) as client:
        optional = dict.fromkeys(("agent_id", "run_id", "metadata", "wait", "max_chars"))
        await client.call("memory_add", text="Tea at five.", user_id="ann", infer=False, **optional)
        options = dict.fromkeys(("agent_id", "top_k", "threshold", "as_of", "filters", "category", "cursor"))
        found = await client.call("memory_search", query="tea", user_id="ann", **options)
        listed = await client.call("memory_list", user_id="ann", **dict.fromkeys(("agent_id", "cursor", "limit")))
        (item,) = listed["items"]
        shown = await client.call("memory_get", id=item["id"], cursor=None, max_chars=None)
        missing = await client.refused("memory_list", user_id=None)
        unknown = await client.refused("memory_get", id=item["id"], colour=None)
    assert [hit["item"]["memory"] for hit in found["results"]] == [item["memory"]] == [shown["memory"]]
    assert (missing["param"], unknown["param"]) == ("user_id", "colour")


class BrokenStore:
    """Fails in a way that nobody foresaw."""

    async def item(self, item_id: str, *, tenant: str) -> None:
        raise RuntimeError(f"a secret of {tenant} in {item_id}")


async def test_an_internal_error_discloses_nothing(it: Whole, caplog: pytest.LogCaptureFixture) -> None:
    memory = replace(it.gateway.memory, store=cast(StoreClient, BrokenStore()))
    it.gateway.app.state.mcp = replace(it.gateway.app.state.mcp, memory=memory)
    async with caller(it.gateway.url) as client:
        with caplog.at_level(logging.ERROR):
            error = await client.refused("memory_get", id=NOBODY)
    assert error == {"message": "an internal error", "type": "api_error", "code": "internal_error"}
    assert "the tool memory_get failed" in caplog.text


@pytest.mark.parametrize("era", ERAS)
async def test_another_tenants_client_reaches_nothing(it: Whole, era: Era) -> None:
    url = it.gateway.url
    async with caller(url, era=era) as alice, caller(url, BOB_KEY, era=era) as bob:
        item_id = await alice.added("Tea at five.")
        before = await alice.call("memory_list", user_id="ann")
        for tool, arguments in {
            "memory_get": {"id": item_id},
            "memory_update": {"id": item_id, "memory": "Bob was here."},
            "memory_delete": {"id": item_id},
        }.items():
            assert (await bob.refused(tool, **arguments))["code"] == "not_found"
        assert (await bob.call("memory_list", user_id="ann"))["items"] == []
        wide = {"OR": [{"tenant": {"eq": "a"}}, {"user_id": "*"}, {"NOT": [{"user_id": "nobody"}]}]}
        for fields in ({}, {"include_raw": True, "latest_only": False}, {"filters": wide}):
            assert (await bob.call("memory_search", query="tea at five", user_id="ann", **fields))["results"] == []
        assert (await bob.refused("memory_search", query="tea", user_id="ann", tenant="a"))["param"] == "tenant"
        assert await alice.call("memory_list", user_id="ann") == before
