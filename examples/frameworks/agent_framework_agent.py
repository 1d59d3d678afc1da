"""An agent of Microsoft's Agent Framework, AutoGen's successor, that remembers: a header of the request.

MEMLOOP_URL=http://127.0.0.1:7800 MEMLOOP_MODEL=memloop-tiny python examples/frameworks/agent_framework_agent.py
"""

import asyncio
import os
import sys

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"Rain in {city}."


def agent(url: str, *, api_key: str, model: str, user_id: str) -> Agent:
    """The agent of a user, whom the gateway recalls before every answer and remembers after it."""
    client = OpenAIChatCompletionClient(
        base_url=f"{url}/v1", api_key=api_key, model=model, default_headers={"X-Memory-User-Id": user_id}
    )
    return Agent(client=client, instructions="You are brief.", tools=[weather])


async def ask(assistant: Agent, question: str) -> str:
    """Run the agent once."""
    return (await assistant.run(question)).text


def main() -> None:
    """Ask what the command line says, as the user ``ada``."""
    assistant = agent(
        os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800"),
        api_key=os.environ.get("MEMLOOP_API_KEY", "unused-on-loopback"),
        model=os.environ.get("MEMLOOP_MODEL", "memloop-tiny"),
        user_id="ada",
    )
    question = " ".join(sys.argv[1:]) or "My locker code is 482."
    print(asyncio.run(ask(assistant, question)))


if __name__ == "__main__":
    main()
