"""``memloop import`` into the real gateway and store: the APIs of mem0, Zep and LangGraph, ChatGPT's export."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from memloop_cli.main import app
from tests.fakes import langgraph_api, zep_api
from tests.fakes.langgraph_api import LangGraphStore
from tests.fakes.mem0_api import Mem0Api
from tests.fakes.web_server import serving
from tests.fakes.zep_api import Zep
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY
from tests.gateway.tenants import World, two_tenants
from tests.memloop_cli.exports import chatgpt_conversation


async def memloop(world: World, home: Path, *arguments: str) -> tuple[int, str]:
    """The command's status and output; it runs in this process, in a thread beside the gateway's loop."""
    environment = {
        "MEMLOOP_URL": world.gateway.url,
        "MEMLOOP_HOME": str(home),
        "MEMLOOP_API_KEY": ALICE_KEY,
        "MEM0_API_KEY": "m0-secret",
        "ZEP_API_KEY": zep_api.KEY,
        "LANGGRAPH_API_KEY": langgraph_api.KEY,
    }
    result = await asyncio.to_thread(CliRunner(env=environment).invoke, app, arguments)
    return result.exit_code, result.output


def _minute(number: int) -> str:
    return f"2024-01-01T{number // 60:02}:{number % 60:02}:00Z"


async def kept(world: World, key: str, user_id: str) -> list[Any]:
    exported = await world.call(key, "POST", "/v1/memory/export", {"user_id": user_id, "include_raw": True})
    items = [json.loads(line)["item"] for line in exported.raw.splitlines()[:-1]]
    return sorted(items, key=lambda item: item["valid_from"])


async def test_mem0s_memories_come_over_its_api_page_by_page_once(redis_url: str, tmp_path: Path) -> None:
    memories = [
        {"id": f"m-{n}", "memory": f"Fact number {n}.", "user_id": "alex", "created_at": _minute(n)} for n in range(250)
    ]
    mem0 = Mem0Api([*memories, {"id": "x", "memory": "Another's.", "user_id": "berta"}], fails_at=3)
    async with two_tenants(redis_url, tmp_path) as world, serving(mem0.routes()) as url:
        command = ("import", "mem0", "--user", "alex", "--mem0-url", url)
        code, output = await memloop(world, tmp_path / "home", *command)
        assert (code, "answered 500" in output) == (1, True), output
        mem0.fails_at = None
        code, output = await memloop(world, tmp_path / "home", *command)
        assert (code, "250 in, 50 kept, 200 ignored, 0 failed" in output) == (0, True), output
        items = await kept(world, ALICE_KEY, "alex")
        assert [item["memory"] for item in items] == [memory["memory"] for memory in memories]
        assert items[61]["valid_from"] == "2024-01-01T01:01:00Z"
        assert await kept(world, BOB_KEY, "alex") == []


def zep(**asked: int) -> Zep:
    """Two threads of 130 and 2 turns, 120 facts, one of them outdated."""
    long = [
        {"uuid": f"m-{n}", "role": ("user", "assistant")[n % 2], "content": f"Turn {n}.", "created_at": _minute(n)}
        for n in range(130)
    ]
    short = [
        {"uuid": "s-0", "role": "user", "content": "Hello.", "created_at": "2024-01-03T00:00:00Z"},
        {"uuid": "s-1", "role": "tool", "content": "{}", "created_at": "2024-01-03T00:00:01Z"},
    ]
    edge = {"name": "SAYS", "source_node_uuid": "n-1", "target_node_uuid": "n-2", "created_at": "2024-01-04T00:00:00Z"}
    facts = [
        {**edge, "uuid": f"f-{n}", "fact": f"Fact {n}.", "valid_at": f"2024-01-02T00:{n // 60:02}:{n % 60:02}Z"}
        for n in range(120)
    ]
    facts[7] |= {"invalid_at": "2024-02-01T00:00:00Z"}
    return Zep("ann/1", {"t 1": long, "t-2": short}, facts, **asked)


@pytest.mark.parametrize("version", ["v4", "v2"])
async def test_zeps_threads_and_facts_come_over_its_api_page_by_page_once(
    redis_url: str, tmp_path: Path, version: str
) -> None:
    source = zep(busy_at=2, breaks_at=7)
    async with two_tenants(redis_url, tmp_path) as world, serving(source.routes()) as url:
        command = ("import", "zep", "--user", "ann/1", "--zep-url", f"{url}/api/{version}")
        code, output = await memloop(world, tmp_path / "home", *command)
        assert (code, "answered 500" in output) == (1, True), output
        code, output = await memloop(world, tmp_path / "home", *command, "--dry-run")
        assert (code, "252 in, 250 kept, 2 ignored, 0 failed (dry run" in output) == (0, True), output
        code, output = await memloop(world, tmp_path / "home", *command)
        assert (code, "252 in, " in output, ", 0 failed" in output) == (0, True, True), output
        items = await kept(world, ALICE_KEY, "ann/1")
        turns = [item["memory"] for item in items if item["memory_type"] == "RawTurn"]
        facts = [item["memory"] for item in items if item["memory_type"] != "RawTurn"]
        assert turns == [f"Turn {n}." for n in range(130)] + ["Hello."]
        assert facts == [f"Fact {n}." for n in range(120) if n != 7]
        assert items[61]["valid_from"] == "2024-01-01T01:01:00Z"


async def test_a_langgraph_deployments_items_come_over_its_api_page_by_page_once(
    redis_url: str, tmp_path: Path
) -> None:
    items = [
        {
            "namespace": ["memories", "ann" if n % 2 else "bob"],
            "key": f"k-{n}",
            "value": {"memory": f"Fact {n}."},
            "created_at": _minute(n),
            "updated_at": _minute(n),
        }
        for n in range(250)
    ]
    source = LangGraphStore(items, breaks_at=3)
    async with two_tenants(redis_url, tmp_path) as world, serving(source.routes()) as url:
        command = ("import", "langgraph", "--user-part", "1", "--langgraph-url", url)
        code, output = await memloop(world, tmp_path / "home", *command)
        assert (code, "answered 500" in output) == (1, True), output
        code, output = await memloop(world, tmp_path / "home", *command)
        assert (code, "250 in, 50 kept, 200 ignored, 0 failed" in output) == (0, True), output
        found = await kept(world, ALICE_KEY, "ann")
        assert [item["memory"] for item in found] == [f"Fact {n}." for n in range(1, 250, 2)]
        assert found[30]["valid_from"] == "2024-01-01T01:01:00Z"


async def test_chatgpts_turns_are_found_with_their_times_and_never_twice(redis_url: str, tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([chatgpt_conversation(number) for number in range(3)]))
    async with two_tenants(redis_url, tmp_path / "data") as world:
        for again in ((), ("--again",)):
            code, output = await memloop(
                world, tmp_path / "home", "import", "chatgpt", str(file), "--user", "ann", *again
            )
            assert code == 0, output
        items = await kept(world, ALICE_KEY, "ann")
        assert len(items) == 9
        assert {item["memory_type"] for item in items} == {"RawTurn"}
        assert items[0]["valid_from"] == "2023-11-14T22:15:00.250000Z"
        search = {"user_id": "ann", "query": "What is cat number 2 called?", "include_raw": True, "top_k": 1}
        (hit,) = (await world.call(ALICE_KEY, "POST", "/v1/memory/search", search)).json["results"]
        assert hit["item"]["memory"] == "My cat number 2 is called Inky."
