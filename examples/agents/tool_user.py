"""An agent to train: it searches a document with a tool, line by line, and answers a question in a box.

    python -m trainer train --recipe RECIPE memloop.agent=examples.agents.tool_user:solve

Each search is one more turn of the same conversation. The lines that the tool finds are in it, and are not trained.
"""

from collections.abc import Mapping
from typing import Any

from memloop.loops.memreader import FoundCall, find_call
from memloop.ports import ChatModel, Prompt, Sampling
from memloop.wire.chat import ChatMessage, Json
from trainer.objectives.answer_reward import answer_reward

MOST_TURNS, MOST_LINES = 6, 3
SEARCH: Json = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Returns the lines of the document that contain all of the words.",
        "parameters": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
    },
}


async def solve(row: Mapping[str, Any], model: ChatModel) -> float:
    """Return 1 for the right answer, else 0."""
    task = f"{row['extra_info']['question']}\nSearch the document, then write the answer in \\boxed{{}}."
    messages = [ChatMessage(role="user", content=task)]
    for _ in range(MOST_TURNS):
        reply = await model.complete(Prompt(tuple(messages), Sampling(max_tokens=192), tools=(SEARCH,), thinking=True))
        call = find_call(reply)
        if not isinstance(call, FoundCall):
            return answer_reward(reply.content, row["reward_model"]["ground_truth"])
        messages.append(ChatMessage(role="assistant", content=reply.content))
        messages.append(ChatMessage(role="tool", content=found(row["context"], str(call.arguments.get("words", "")))))
    return 0.0


def found(document: str, words: str) -> str:
    """Return the first lines that contain all of the words."""
    wanted = words.lower().split()
    lines = [line for line in document.splitlines() if wanted and all(word in line.lower() for word in wanted)]
    return "\n".join(lines[:MOST_LINES]) or "No line contains these words."
