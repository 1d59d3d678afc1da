"""Results fit the characters that a model may read, have each text once, and lead on by a cursor."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult

from tests.fakes.job_engine import Body, Reply, last_text
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY
from tests.gateway.long_reads import DOCUMENT
from tests.gateway.mcp_client.caller import Caller, caller
from tests.gateway.whole import Whole, whole

LONG = 15_000


async def sized(client: Caller, tool: str, **arguments: Any) -> tuple[Any, int]:
    """The result and its size as it goes over the wire."""
    result: CallToolResult = await client.client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    raw = result.model_dump_json(exclude_none=True)
    return json.loads(raw)["content"][0]["text"], len(raw)


async def remember(client: Caller, count: int, *, chars: int) -> list[str]:
    texts = [f"Note {number:02} of tea. " + f"word{number:02} " * (chars // 7) for number in range(count)]
    for text in texts:
        await client.call("memory_add", text=text.strip(), user_id="ann", infer=False)
    return [text.strip() for text in texts]


@pytest.mark.parametrize("chars", [150, 3_000, LONG])
async def test_searches_and_lists_come_in_pages_that_fit(it: Whole, chars: int) -> None:
    async with caller(it.gateway.url) as client:
        texts = await remember(client, 12, chars=chars)
        for tool, asked, key in (
            ("memory_search", {"query": "Note of tea", "top_k": 12}, "results"),
            ("memory_list", {"limit": 12}, "items"),
        ):
            seen, cursor = list[str](), {}
            while True:
                text, size = await sized(client, tool, user_id="ann", **asked, **cursor)
                assert size < 20_000 * 1.1, "quotes of the wire around the 20,000 characters"
                page = json.loads(text)
                for entry in page[key]:
                    memory = entry["item"]["memory"] if key == "results" else entry["memory"]
                    seen.append(memory)
                    assert text.count(memory) == 1
                if "next_cursor" not in page:
                    break
                cursor = {"cursor": page["next_cursor"]}
            assert len(seen) == 12
            assert sorted(seen) == sorted(texts)


async def test_a_long_memory_is_read_part_by_part(it: Whole) -> None:
    async with caller(it.gateway.url) as client:
        (long,) = await remember(client, 1, chars=32_000)
        item = (await client.call("memory_search", query="tea", user_id="ann"))["results"][0]["item"]
        assert "more characters" in item["memory"]
        read, cursor = "", {}
        while True:
            text, size = await sized(client, "memory_get", id=item["id"], **cursor)
            assert size < 20_000 * 1.1
            part = json.loads(text)
            read += part["memory"]
            if "next_cursor" not in part:
                break
            cursor = {"cursor": part["next_cursor"]}
        assert read == long
        edited, size = await sized(client, "memory_update", id=item["id"], tags=["tea"])
        assert size < 20_000 * 1.1
        assert json.loads(edited)["cut"]


ANSWER = " ".join(f"Box {number:03} stands in the {number:03}rd room of the house." for number in range(400))
NOTES = " ".join(f"Seen: box {number:03}, {'tea ' * 10}." for number in range(300))


def thorough(body: Body) -> Reply:
    """Reads anything, and has much to say about it."""
    return rf"\boxed{{{ANSWER}}}" if "boxed" in last_text(body) else NOTES


@pytest.mark.parametrize("max_chars", [None, 2_000])
async def test_a_long_result_of_a_read_comes_in_parts_with_its_evidence(
    redis_url: str, tmp_path: Path, max_chars: int | None
) -> None:
    most = {} if max_chars is None else {"max_chars": max_chars}
    async with whole(redis_url, tmp_path, thorough) as it, caller(it.gateway.url) as client:
        given: dict[str, Any] = {"question": "Where?", "text": ANSWER, "evidence": True}
        text, _ = await sized(client, "long_read", **given, **most)
        parts, asked = [json.loads(text)], len(it.engine.calls)
        while "next_cursor" in parts[-1]:
            assert len(text) <= (max_chars or 20_000)
            assert "cut" not in parts[-1]
            text, _ = await sized(client, "long_read", cursor=parts[-1]["next_cursor"], question="Where?", **most)
            parts.append(json.loads(text))
        stored = (await it.gateway.get(f"/v1/long-read/{parts[0]['id']}", headers={"X-API-Key": ALICE_KEY})).json
    assert len(parts) > 2
    assert len(it.engine.calls) == asked
    assert "".join(part["output_text"] for part in parts) == stored["output_text"] == ANSWER
    assert "".join(part["memory"] for part in parts) == stored["memory"]
    evidence = [entry for part in parts for entry in part["evidence"]]
    assert evidence == [
        {name: value for name, value in entry.items() if value is not None} for entry in stored["evidence"]
    ]
    assert len({entry["statement"] for entry in evidence if entry["supported"]}) == 400


async def test_a_cursor_of_another_tenants_read_is_refused(it: Whole) -> None:
    async with caller(it.gateway.url) as alice, caller(it.gateway.url, BOB_KEY) as bob:
        read = await alice.call("long_read", question="Where?", text=DOCUMENT)
        assert (await bob.refused("long_read", cursor=f"0.{read['id']}"))["code"] == "not_found"
        assert (await alice.call("long_read", cursor=f"0.{read['id']}"))["output_text"] == "In Rome."
        for wrong in ("x", "1", "-1.lr_x", ""):
            assert (await alice.refused("long_read", cursor=wrong))["param"] == "cursor"
        assert (await alice.refused("long_read", text=DOCUMENT))["param"] == "question"


async def test_a_client_may_ask_for_more_and_less(it: Whole) -> None:
    async with caller(it.gateway.url) as client:
        await remember(client, 4, chars=LONG)
        text, size = await sized(client, "memory_search", query="tea", user_id="ann", max_chars=100_000)
        assert size > 4 * LONG
        assert len(json.loads(text)["results"]) == 4
        _, size = await sized(client, "memory_search", query="tea", user_id="ann", max_chars=1_000)
        assert size < 1_500


async def test_a_cursor_that_is_none_is_refused(it: Whole) -> None:
    async with caller(it.gateway.url) as client:
        for cursor in ("-1", "x", "٣", "1e3", "99999999999999"):
            error = await client.refused("memory_search", query="tea", user_id="ann", cursor=cursor)
            assert error["param"] == "cursor"


async def test_arguments_as_texts_are_read_as_the_schema_has_them(it: Whole) -> None:
    async with caller(it.gateway.url) as client:
        written = {"infer": "False", "wait": "true", "metadata": '{"n": 1}', "agent_id": None, "max_chars": " 5000 "}
        added = await client.call("memory_add", text="5", user_id="7", **written)
        assert (added["status"], added["memories"]) == ("completed", ["5"])
        asked = {"top_k": "3", "threshold": "0.0", "latest_only": "true", "filters": '{"n": 1}', "explain": None}
        (hit,) = (await client.call("memory_search", query="5", user_id="7", **asked))["results"]
        assert (hit["item"]["memory"], hit["item"]["metadata"]) == ("5", {"n": 1})
        assert len((await client.call("memory_list", user_id="7", limit="1"))["items"]) == 1
        for wrong in ({"limit": "many"}, {"limit": "1.5"}, {"limit": "999"}, {"limit": "true"}, {"limit": ""}):
            assert (await client.refused("memory_list", user_id="7", **wrong))["param"] == "limit"
        assert (await client.refused("memory_list", user_id=None))["param"] == "user_id"
        assert (await client.refused("memory_list", user_id=7))["param"] == "user_id"


async def test_the_server_names_its_version(it: Whole) -> None:
    async with caller(it.gateway.url, era="legacy") as client:
        assert client.client.server_info is not None
        assert client.client.server_info.version == version("memloop-service")
