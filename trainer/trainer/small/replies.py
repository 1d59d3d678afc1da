"""The base's own replies to general chat: learned beside the tasks, they keep what the base could do before."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from memloop.wire.chat import ChatMessage
from trainer.small.kinds import English
from trainer.small.sample import Sample
from trainer.small.writing import ignored_line


def write_base_replies(
    file: Path, ask: Callable[[Sequence[Sample]], list[str | None]], english: English, count: int
) -> int:
    """Ask the base the general questions and ``count`` lines without a fact; write its replies that have an end."""
    rng = Random("base replies")
    lines = dict.fromkeys([*english.general, *(ignored_line(english, rng) for _ in range(count))])
    samples = [chat_sample(line, "") for line in lines]
    kept = [
        {"prompt": line, "reply": reply}
        for line, reply in zip(lines, ask(samples), strict=True)
        if reply is not None and reply.strip()
    ]
    file.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in kept), "utf-8")
    return len(kept)


def chat_sample(prompt: str, reply: str) -> Sample:
    """Return a turn of general chat."""
    return Sample("chat", (ChatMessage(role="user", content=prompt),), reply)
