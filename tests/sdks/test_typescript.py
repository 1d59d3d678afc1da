"""The TypeScript SDKs against the gateway over real HTTP. Run: ``make test-sdks``, which installs them."""

import asyncio
import os
from pathlib import Path

from tests.fakes.streaming_engine import FakeEngine, Hangs, Refuses, Says
from tests.gateway.running import Gateway

FOLDER = Path(__file__).parent
NODE = os.environ.get("NODE", "node")
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}


async def test_anthropic(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(
        Says(),
        Says(pieces=["Hel", "lo."]),
        Says(tool_calls=[CALL], finish_reason="tool_calls"),
        Says("Rain."),
        Refuses(429, {"error": {"message": "slow down"}}),
        Hangs("Hel"),
    )
    script = await asyncio.create_subprocess_exec(
        NODE, FOLDER / "messages.mjs", gateway.url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    printed, _ = await script.communicate()
    assert (script.returncode, printed.decode()) == (0, "done\n")
    await engine.until_running(0)
    assert engine.aborted == 1
    assert len(await gateway.queued_turns()) == 2
