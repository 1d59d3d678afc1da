"""Every recipe of ``examples/frameworks`` with its real packages, against the real gateway on a scripted engine.

Run: ``make test-frameworks``, which installs the packages into an environment of their own.
"""

import os
from pathlib import Path

import pytest

from tests.fakes.processes import printed_by
from tests.fakes.recall_store import FakeStore
from tests.fakes.streaming_engine import MODEL, FakeEngine, Says
from tests.gateway.running import Gateway, said

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("FRAMEWORKS_PYTHON", str(ROOT / ".venv-frameworks/bin/python"))
PATIENCE_S = 300.0
THREADS = "langchain_threads"
AGENTS = ["agent_framework_agent", "crewai_crew", "llama_index_agent", "openai_agents", "pydantic_ai_agent"]
WEATHER = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}


async def run(recipe: str, question: str, gateway: Gateway, home: Path) -> str:
    """What the recipe prints; it succeeds."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "MEMLOOP_URL": gateway.url, "MEMLOOP_MODEL": MODEL}
    return await printed_by(
        PYTHON, ROOT / "examples/frameworks" / f"{recipe}.py", question, cwd=home, env=env, timeout_s=PATIENCE_S
    )


@pytest.mark.parametrize("recipe", [THREADS, *AGENTS])
async def test_the_second_run_recalls_the_first(
    recipe: str, gateway: Gateway, engine: FakeEngine, store: FakeStore, tmp_path: Path
) -> None:
    engine.will(Says("It is 482."))
    assert "It is 482." in await run(recipe, "Remember my locker code.", gateway, tmp_path)
    [turns] = await gateway.queued_turns()
    assert [role for role, _ in said(turns)][-1] == "assistant"
    assert "Remember my locker code." in said(turns)[0][1]
    assert "Hello." in await run(recipe, "What is my locker code?", gateway, tmp_path)
    assert any("It is 482." in str(message["content"]) for message in engine.last.json["messages"])
    assert {search.namespace.user_id for search in store.searches} == {"ada"}


@pytest.mark.parametrize("recipe", AGENTS)
async def test_an_agent_calls_its_tool_and_goes_on(
    recipe: str, gateway: Gateway, engine: FakeEngine, tmp_path: Path
) -> None:
    engine.will(Says(tool_calls=[WEATHER], finish_reason="tool_calls"), Says("It rains."))
    assert "It rains." in await run(recipe, "How is the weather in Oslo?", gateway, tmp_path)
    results = [message for message in engine.last.json["messages"] if message["role"] == "tool"]
    assert [str(result["content"]) for result in results if "Rain in Oslo." in str(result["content"])]
    assert len(await gateway.queued_turns()) >= 1
