"""Builds training rows in verl's columns: one prompt each for RL, or one conversation each for SFT.

Every RL row has ``data_source``, ``prompt``, ``ability``, ``reward_model``, ``extra_info`` and ``agent_name``. The
loop's input is ``context`` and ``extra_info.question`` for the reading loops, ``extra_info.conversation`` and
``extra_info.memories`` (the store's content) for the memory writer. verl passes all columns to the agent loop.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

from memloop.ports import Recalled
from memloop.wire.chat import ChatMessage, Json
from memloop.wire.memory import Source

AgentName: TypeAlias = Literal["memagent", "memreread", "memreader"]


def reading_row(
    *,
    data_source: str,
    index: int,
    id_: str,
    question: str,
    answers: Sequence[str],
    context: str,
    agent: AgentName,
    documents: int = 1,
    evidence: Sequence[int] = (),
) -> Json:
    """Build a row of ``schemas.READING``. ``evidence`` numbers the documents with the facts, from 1."""
    return {
        **_common(data_source, question, answers, agent),
        "context": context,
        "extra_info": {
            "index": index,
            "id": id_,
            "question": question,
            "num_docs": documents,
            "evidence": list(evidence),
        },
    }


def writing_row(
    *,
    data_source: str,
    index: int,
    id_: str,
    turns: Sequence[Source],
    stored: Sequence[Recalled],
    gold: Sequence[str],
) -> Json:
    """Build a row of ``schemas.WRITING``: the turns, the store's content, and the gold decision in words.

    ``gold`` is ``add`` followed by the memories, or ``buffer`` or ``ignore`` alone.
    """
    said = "\n".join(f"[{turn.role}]: {turn.content}" for turn in turns)
    return {
        **_common(data_source, said, gold, "memreader"),
        "context": "",
        "extra_info": {
            "index": index,
            "id": id_,
            "question": gold[0],
            "conversation": [turn.model_dump(mode="json", include={"role", "content", "timestamp"}) for turn in turns],
            "memories": [
                {"id": each.id, "text": each.text, "valid_from": each.valid_from.isoformat(), "key": each.key}
                for each in stored
            ],
        },
    }


def conversation_row(
    *,
    data_source: str,
    index: int,
    id_: str,
    kind: str,
    messages: Sequence[ChatMessage],
    learned: Sequence[int],
    tools: Sequence[Json] = (),
    thinking: bool = False,
) -> Json:
    """Build a row of ``schemas.CONVERSATION``; ``kind`` names the sort of turn or trace.

    ``learned`` are the positions in ``messages`` of the replies to imitate; the others are context.
    """
    return {
        "data_source": data_source,
        "messages": [message.model_dump(mode="json", exclude_none=True) for message in messages],
        "tools": json.dumps(list(tools), ensure_ascii=False) if tools else None,
        "enable_thinking": thinking,
        "learned": list(learned),
        "extra_info": {"index": index, "id": id_, "kind": kind},
    }


def _common(data_source: str, prompt: str, ground_truth: Sequence[str], agent: AgentName) -> Json:
    return {
        "data_source": data_source,
        "prompt": [{"role": "user", "content": prompt}],
        "ability": "memory",
        "reward_model": {"style": "rule", "ground_truth": list(ground_truth)},
        "agent_name": agent,
    }
