"""A crew of CrewAI that remembers: a header of the request. CrewAI's own memory stays off.

    MEMLOOP_URL=http://127.0.0.1:7800 MEMLOOP_MODEL=memloop-tiny python examples/frameworks/crewai_crew.py

The user's words stand in the task's description, which CrewAI wraps in a prompt of its own: the gateway recalls for
this prompt, and remembers it whole.
"""

import os
import sys

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool


@tool("weather")
def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"Rain in {city}."


def crew(url: str, *, api_key: str, model: str, user_id: str) -> Crew:
    """A crew of one agent for a user, whom the gateway recalls before every answer and remembers after it."""
    llm = LLM(
        model=model,
        provider="openai",
        base_url=f"{url}/v1",
        api_key=api_key,
        default_headers={"X-Memory-User-Id": user_id},
    )
    assistant = Agent(role="Assistant", goal="Answer the user.", backstory="You are brief.", llm=llm, tools=[weather])
    answer = Task(description="{question}", expected_output="A short answer.", agent=assistant)
    return Crew(agents=[assistant], tasks=[answer])


def main() -> None:
    """Ask what the command line says, as the user ``ada``."""
    asked = crew(
        os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800"),
        api_key=os.environ.get("MEMLOOP_API_KEY", "unused-on-loopback"),
        model=os.environ.get("MEMLOOP_MODEL", "memloop-tiny"),
        user_id="ada",
    )
    question = " ".join(sys.argv[1:]) or "My locker code is 482."
    print(asked.kickoff(inputs={"question": question}).raw)


if __name__ == "__main__":
    main()
