"""The recipes for agent frameworks: what one conversation tells is known in the next, and to no other user."""

import asyncio
import importlib
from typing import Any

from langchain_core.messages import HumanMessage

from memloop.wire.memory import Namespace
from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.rig import eventually
from tests.gateway.whole import Whole

TOLD, ASKED = "My locker code is 482.", "What is my locker code?"


def recipe(name: str) -> Any:
    """The example as a module."""
    return importlib.import_module(f"examples.frameworks.{name}")


async def remembered(it: Whole, user_id: str) -> None:
    """Wait until the memory writer has kept what was said."""
    store, namespace = it.gateway.memory.store, Namespace(tenant="a", user_id=user_id)

    async def kept() -> bool:
        return [item.memory for item in (await store.items(namespace)).items] == ["The user's locker code is 482."]

    await eventually(kept)


async def test_a_langgraph_agent_remembers_across_threads(it: Whole) -> None:
    module = recipe("langgraph_memory")
    graph = await asyncio.to_thread(module.agent, it.gateway.url, api_key=ALICE_KEY, model="m")

    async def asks(user_id: str, text: str) -> str:
        state = await asyncio.to_thread(graph.invoke, {"messages": [HumanMessage(text)], "user_id": user_id})
        return state["messages"][-1].text

    assert await asks("ada", ASKED) == "I do not know."
    await asks("ada", TOLD)
    await remembered(it, "ada")
    assert await asks("ada", ASKED) == "It is 482."
    assert await asks("bob", ASKED) == "I do not know."


async def test_langchain_threads_share_one_memory_and_no_history(it: Whole) -> None:
    graph = recipe("langchain_threads").chat(it.gateway.url, api_key=ALICE_KEY, model="m")

    async def asks(user_id: str, thread_id: str, text: str) -> tuple[str, int]:
        config = {"configurable": {"thread_id": thread_id, "user_id": user_id}}
        state = await asyncio.to_thread(graph.invoke, {"messages": [HumanMessage(text)]}, config)
        return state["messages"][-1].text, len(state["messages"])

    assert await asks("ada", "1", ASKED) == ("I do not know.", 2)
    assert (await asks("ada", "1", TOLD))[1] == 4
    await remembered(it, "ada")
    assert await asks("ada", "2", ASKED) == ("It is 482.", 2)
    assert await asks("bob", "3", ASKED) == ("I do not know.", 2)
