"""TypeScript clients as their pages say, with memory on, against the gateway. Run: ``make test-clients``."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import FakeEngine, Says
from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.mem0_client.drop_in import remember
from tests.gateway.running import Gateway
from tests.gateway.whole import whole

FOLDER = Path(__file__).parent
NODE = os.environ.get("NODE", "node")
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
CLIENTS = [
    *(("vercel.mjs", provider) for provider in ("chat", "responses", "anthropic", "compatible")),
    *(("langchain.mjs", model) for model in ("ChatOpenAI", "ChatOpenAI, Responses", "ChatAnthropic")),
    *(("agents.mjs", api) for api in ("chat", "responses")),
]


async def succeeds(script: str, *arguments: str) -> None:
    """Run a script; it ends well."""
    process = await asyncio.create_subprocess_exec(
        *(NODE, FOLDER / script, *arguments), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    printed, complaints = await process.communicate()
    assert (process.returncode, printed) == (0, b"done\n"), complaints.decode()


@pytest.mark.parametrize(("script", "way"), CLIENTS, ids=[f"{script[:-4]}, {way}" for script, way in CLIENTS])
async def test_a_client_talks_streams_and_calls_tools_with_memory_on(
    script: str, way: str, gateway: Gateway, engine: FakeEngine, store: FakeStore
) -> None:
    store.finds = [memory("m1", "The user likes tea.")]
    engine.will(
        *(Says(), Says(), Says(pieces=["Hel", "lo."])),
        *(Says(tool_calls=[CALL], finish_reason="tool_calls"), Says("It rains.")),
    )
    await succeeds(script, gateway.url, way)
    results = [message for message in engine.last.json["messages"] if message["role"] == "tool"]
    assert [result["content"] for result in results] == ["Rain in Oslo."]
    assert len(store.searches) == 5
    assert {search.namespace.user_id for search in store.searches} == {"ada"}
    assert len(await gateway.queued_turns()) == 5


async def test_memories_by_mcp(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path / "store", remember) as running:
        await succeeds("mcp.mjs", running.gateway.url, ALICE_KEY)
