"""The TypeScript SDKs against the gateway over real HTTP. Run: ``make test-sdks``, which installs them."""

import asyncio
import json
import os
import tempfile
from pathlib import Path

from tests.fakes.streaming_engine import FakeEngine, Hangs, Refuses, Says
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, api
from tests.gateway.mem0_client.drop_in import remember
from tests.gateway.mem0_client.test_memories import FILTERS
from tests.gateway.rig import script
from tests.gateway.running import Gateway
from tests.gateway.whole import whole

FOLDER = Path(__file__).parent
NODE = os.environ.get("NODE", "node")
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}


async def succeeds(script: str, *arguments: str) -> None:
    """Run a script; it ends well. No telemetry leaves the machine, and nothing is written into the user's home."""
    with tempfile.TemporaryDirectory() as home:
        process = await asyncio.create_subprocess_exec(
            NODE,
            FOLDER / script,
            *arguments,
            env={**os.environ, "MEM0_TELEMETRY": "false", "HOME": home},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, complaints = await process.communicate()
    assert (process.returncode, printed) == (0, b"done\n"), complaints.decode()


async def test_anthropic(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(
        Says(),
        Says(pieces=["Hel", "lo."]),
        Says(tool_calls=[CALL], finish_reason="tool_calls"),
        Says("Rain."),
        Refuses(429, {"error": {"message": "slow down"}}),
        Hangs("Hel"),
    )
    await succeeds("messages.mjs", gateway.url)
    await engine.until_running(0)
    assert engine.aborted == 1
    assert len(await gateway.queued_turns()) == 2


async def test_openai(gateway: Gateway, engine: FakeEngine) -> None:
    note = {"id": "c2", "type": "function", "function": {"name": "note", "arguments": '{"input": "Rain."}'}}
    engine.will(
        Says(),
        Says(),
        Says(tool_calls=[CALL], finish_reason="tool_calls"),
        Refuses(429, {"error": {"message": "slow down"}}),
        Says(),
        Says(),
        Says(),
        Says(tool_calls=[CALL, note], finish_reason="tool_calls"),
        Says(),
        Hangs("Hel"),
    )
    await succeeds("openai.mjs", gateway.url)
    await engine.until_running(0)
    assert engine.aborted == 1
    assert len(await gateway.queued_turns()) == 3


async def test_the_apis_own_types(gateway: Gateway) -> None:
    compiled = await asyncio.create_subprocess_exec(NODE, FOLDER / "node_modules/typescript/bin/tsc", "-p", FOLDER)
    assert await compiled.wait() == 0
    await succeeds("build/tests/sdks/typed.js", gateway.url)


async def test_conversations_and_background_responses(redis_url: str) -> None:
    async with api(redis_url, script("Rex.", "A dog.", "Later.")) as it, it.rig.working():
        await succeeds("conversations.mjs", it.gateway.url)


async def test_mem0(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path / "store", remember) as running:
        await succeeds("mem0.mjs", running.gateway.url, ALICE_KEY, BOB_KEY, json.dumps(FILTERS))
