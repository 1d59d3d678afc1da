"""``memloop import`` into the real gateway and store: mem0's API, ChatGPT's export; repeats, times, tenants."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.fakes.mem0_api import Mem0Api
from tests.fakes.processes import PATIENCE_S
from tests.fakes.web_server import serving
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY
from tests.gateway.tenants import World, two_tenants
from tests.memloop_cli.exports import chatgpt_conversation


async def memloop(world: World, home: Path, *arguments: str) -> tuple[int | None, str]:
    environment = {
        "PATH": os.environ["PATH"],
        "MEMLOOP_URL": world.gateway.url,
        "MEMLOOP_HOME": str(home),
        "MEMLOOP_API_KEY": ALICE_KEY,
        "MEM0_API_KEY": "m0-secret",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "memloop_cli.main", *arguments),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    return process.returncode, output.decode()


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
