"""LangChain chats, each with its own thread, and one memory across all of them: no code but a field of the request.

    MEMLOOP_URL=http://127.0.0.1:7800 MEMLOOP_MODEL=memloop-tiny python examples/frameworks/langchain_threads.py

A thread's messages are kept by LangGraph's checkpointer, which has taken the place of LangChain's chat histories.
Memloop recalls before every answer and remembers after it, for the user whom the request names.
"""

import os
import sys
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph


def chat(url: str, *, api_key: str, model: str) -> Any:
    """The compiled graph; invoke it with ``messages`` and a config that names ``thread_id`` and ``user_id``."""
    llm = ChatOpenAI(base_url=f"{url}/v1", api_key=api_key, model=model)

    def answer(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        memory = {"user_id": config["configurable"]["user_id"]}
        return {"messages": [llm.invoke(state["messages"], extra_body={"memory": memory})]}

    graph = StateGraph(MessagesState)
    graph.add_node(answer)
    graph.add_edge(START, "answer")
    return graph.compile(checkpointer=InMemorySaver())


def main() -> None:
    """Ask what the command line says, as the user ``ada``."""
    graph = chat(
        os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800"),
        api_key=os.environ.get("MEMLOOP_API_KEY", "unused-on-loopback"),
        model=os.environ.get("MEMLOOP_MODEL", "memloop-tiny"),
    )
    question = " ".join(sys.argv[1:]) or "My locker code is 482."
    config = {"configurable": {"thread_id": "1", "user_id": "ada"}}
    print(graph.invoke({"messages": [HumanMessage(question)]}, config)["messages"][-1].text)


if __name__ == "__main__":
    main()
