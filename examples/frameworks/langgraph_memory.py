"""A LangGraph agent that remembers across threads: mem0's own client in two nodes, with Memloop as its host.

    MEMLOOP_URL=http://127.0.0.1:7800 MEMLOOP_MODEL=memloop-tiny python examples/frameworks/langgraph_memory.py

The graph searches the user's memories, answers, and hands what was said to the memory writer. What is remembered comes
into the prompt as marked data in a user message: text that somebody once said is no instruction.
"""

import os
import sys
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from mem0 import MemoryClient


class State(MessagesState):
    """The conversation, whose it is, and what is remembered of them."""

    user_id: str
    memories: list[str]


def agent(url: str, *, api_key: str, model: str) -> Any:
    """The compiled graph; invoke it with ``messages`` and ``user_id``."""
    memory = MemoryClient(api_key=api_key, host=url)
    llm = ChatOpenAI(base_url=f"{url}/v1", api_key=api_key, model=model)

    def recall(state: State) -> dict[str, Any]:
        found = memory.search(state["messages"][-1].text, filters={"user_id": state["user_id"]}, top_k=5)
        return {"memories": [one["memory"] for one in found["results"]]}

    def answer(state: State) -> dict[str, Any]:
        notes = "\n".join(f"- {text}" for text in state["memories"]) or "- nothing yet"
        known = HumanMessage(f"<notes from earlier conversations>\n{notes}\n</notes>")
        *before, question = state["messages"]
        return {"messages": [llm.invoke([*before, known, question])]}

    def remember(state: State) -> None:
        question, reply = state["messages"][-2:]
        turns = [{"role": "user", "content": question.text}, {"role": "assistant", "content": reply.text}]
        memory.add(turns, user_id=state["user_id"])

    graph = StateGraph(State)
    graph.add_sequence([recall, answer, remember])
    graph.add_edge(START, "recall")
    graph.add_edge("remember", END)
    return graph.compile()


def main() -> None:
    """Ask what the command line says, as the user ``ada``."""
    ask = agent(
        os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800"),
        api_key=os.environ.get("MEMLOOP_API_KEY", "unused-on-loopback"),
        model=os.environ.get("MEMLOOP_MODEL", "memloop-tiny"),
    )
    question = " ".join(sys.argv[1:]) or "My locker code is 482."
    state = ask.invoke({"messages": [HumanMessage(question)], "user_id": "ada"})
    print(state["messages"][-1].text)


if __name__ == "__main__":
    main()
