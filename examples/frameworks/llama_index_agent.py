"""An agent of LlamaIndex that remembers: one field of the request.

MEMLOOP_URL=http://127.0.0.1:7800 MEMLOOP_MODEL=memloop-tiny python examples/frameworks/llama_index_agent.py
"""

import asyncio
import os
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"Rain in {city}."


def agent(url: str, *, api_key: str, model: str, user_id: str) -> FunctionAgent:
    """The agent of a user, whom the gateway recalls before every answer and remembers after it."""
    llm = OpenAILike(
        api_base=f"{url}/v1",
        api_key=api_key,
        model=model,
        is_chat_model=True,
        is_function_calling_model=True,
        additional_kwargs={"extra_body": {"memory": {"user_id": user_id}}},
    )
    return FunctionAgent(llm=llm, tools=[weather])


async def ask(assistant: FunctionAgent, question: str) -> str:
    """Run the agent once."""
    return str(await assistant.run(user_msg=question))


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
