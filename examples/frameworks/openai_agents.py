"""An agent of OpenAI's Agents SDK that remembers: one field of the request. It speaks the Responses API.

MEMLOOP_URL=http://127.0.0.1:7800 MEMLOOP_MODEL=memloop-tiny python examples/frameworks/openai_agents.py
"""

import os
import sys

from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI


@function_tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"Rain in {city}."


def agent(url: str, *, api_key: str, model: str, user_id: str) -> Agent:
    """The agent of a user, whom the gateway recalls before every answer and remembers after it."""
    set_tracing_disabled(disabled=True)  # else the SDK sends traces to OpenAI
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key=api_key)
    return Agent(
        name="Assistant",
        model=OpenAIResponsesModel(model=model, openai_client=client),
        model_settings=ModelSettings(extra_body={"memory": {"user_id": user_id}}),
        tools=[weather],
    )


def main() -> None:
    """Ask what the command line says, as the user ``ada``."""
    assistant = agent(
        os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800"),
        api_key=os.environ.get("MEMLOOP_API_KEY", "unused-on-loopback"),
        model=os.environ.get("MEMLOOP_MODEL", "memloop-tiny"),
        user_id="ada",
    )
    question = " ".join(sys.argv[1:]) or "My locker code is 482."
    print(Runner.run_sync(assistant, question).final_output)


if __name__ == "__main__":
    main()
