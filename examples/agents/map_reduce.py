"""An agent to train: it reads all parts of a document side by side, then answers from the notes.

    python -m trainer train --recipe RECIPE memloop.agent=examples.agents.map_reduce:solve

Every call has a reward of its own: a note for the share of the right answer's words in it, the answer for being right.
"""

from asyncio import gather
from collections.abc import Mapping
from typing import Any

from memloop.ports import ChatModel, Completion, Prompt, Sampling
from memloop.scoring.lenient import word_recall
from memloop.wire.chat import ChatMessage
from trainer.objectives.answer_reward import answer_reward

PART_CHARACTERS, MOST_PARTS = 1200, 16


async def solve(row: Mapping[str, Any], model: ChatModel) -> list[float]:
    """Return the reward of each note, then that of the answer."""
    question, golds = row["extra_info"]["question"], row["reward_model"]["ground_truth"]
    document = row["context"][: PART_CHARACTERS * MOST_PARTS]
    parts = [document[start : start + PART_CHARACTERS] for start in range(0, len(document), PART_CHARACTERS)]
    asked = (f"Question: {question}\nNote what this part of a document says about it.\n\n{part}" for part in parts)
    notes = await gather(*(ask(model, each, max_tokens=64) for each in asked))
    listed = "\n".join(f"- {note.content}" for note in notes)
    final = f"Question: {question}\nNotes on the parts:\n{listed}\n\nWrite the answer in \\boxed{{}}."
    answer = await ask(model, final, max_tokens=192)
    return [*(word_recall(note.content, golds) for note in notes), answer_reward(answer.content, golds)]


async def ask(model: ChatModel, text: str, *, max_tokens: int) -> Completion:
    """Return the reply to a single message."""
    return await model.complete(Prompt((ChatMessage(role="user", content=text),), Sampling(max_tokens=max_tokens)))
