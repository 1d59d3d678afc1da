"""An agent of Pydantic AI that remembers: one field of the request.

MEMLOOP_URL=http://127.0.0.1:7800 MEMLOOP_MODEL=memloop-tiny python examples/frameworks/pydantic_ai_agent.py
"""

import os
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.providers.openai import OpenAIProvider


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"Rain in {city}."


def agent(url: str, *, api_key: str, model: str, user_id: str) -> Agent[None, str]:
    """The agent of a user, whom the gateway recalls before every answer and remembers after it."""
    provider = OpenAIProvider(base_url=f"{url}/v1", api_key=api_key)
    settings = OpenAIChatModelSettings(extra_body={"memory": {"user_id": user_id}})
    return Agent(OpenAIChatModel(model, provider=provider), model_settings=settings, tools=[weather])


def main() -> None:
    """Ask what the command line says, as the user ``ada``."""
    assistant = agent(
        os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800"),
        api_key=os.environ.get("MEMLOOP_API_KEY", "unused-on-loopback"),
        model=os.environ.get("MEMLOOP_MODEL", "memloop-tiny"),
        user_id="ada",
    )
    question = " ".join(sys.argv[1:]) or "My locker code is 482."
    print(assistant.run_sync(question).output)


if __name__ == "__main__":
    main()
