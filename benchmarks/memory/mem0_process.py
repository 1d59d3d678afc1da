"""Runs mem0's open-source ``Memory`` in its own process: one JSON command per input line, one JSON answer per output
line.

It uses its default vector store (Qdrant in process, on disk), its own Hugging Face embedder with our model, no language
model, and no telemetry.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.memory.corpus import fact, user_of
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, model_source

_STEP = 1000


def main() -> None:
    """Serve until the input ends. Arguments: a folder, the file of the vectors."""
    folder, vectors_file = Path(sys.argv[1]), Path(sys.argv[2])
    answers, sys.stdout = sys.stdout, sys.stderr  # mem0's own output must not mix with the answers
    peer = Peer(folder, vectors_file)
    does: dict[str, Callable[[Any], object]] = {
        "grow": peer.grow,
        "search": peer.search,
        "add": peer.add,
        "add_many": peer.add_many,
    }
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        name, argument = json.loads(line)
        print(json.dumps(does[name](argument)), file=answers, flush=True)


class Peer:
    """mem0 configured as in its quick start, except for the model."""

    def __init__(self, folder: Path, vectors_file: Path) -> None:
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder / "home"), TQDM_DISABLE="1", HF_HUB_OFFLINE="1")
        # it reads its environment when it is imported
        from mem0 import Memory  # pyright: ignore[reportMissingTypeStubs]

        store = {"path": str(folder / "qdrant"), "embedding_model_dims": 384, "on_disk": True}
        self._memory: Any = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": {"provider": "huggingface", "config": {"model": model_source(DEFAULT_MODEL)}},
                "llm": {"provider": "openai", "config": {"api_key": "never-called"}},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._vectors = np.load(vectors_file)
        self._count = 0

    def grow(self, count: int) -> float:
        """Insert facts with precomputed vectors through mem0's own vector store; return the seconds."""
        began = time.perf_counter()
        for start in range(self._count, count, _STEP):
            numbers = range(start, min(start + _STEP, count))
            self._memory.vector_store.insert(
                vectors=[cast("list[float]", self._vectors[number].tolist()) for number in numbers],
                ids=[str(_id(number)) for number in numbers],
                payloads=[_payload(number) for number in numbers],
            )
        self._count = count
        return time.perf_counter() - began

    def search(self, questions: list[tuple[str, str]]) -> list[float]:
        """Return the milliseconds of each (user, question)."""
        return [self._timed(user, question) for user, question in questions]

    def _timed(self, user: str, question: str) -> float:
        began = time.perf_counter()
        found = self._memory.search(question, filters={"user_id": user}, top_k=10)
        if not found["results"]:
            raise ValueError(f"mem0 found nothing for {user}")
        return 1000 * (time.perf_counter() - began)

    def add(self, texts: list[tuple[str, str]]) -> float:
        """Return the seconds to add (user, text) one by one."""
        began = time.perf_counter()
        for user, text in texts:
            self._memory.add(text, user_id=user, infer=False)
        return time.perf_counter() - began

    def add_many(self, texts: list[tuple[str, str]]) -> float:
        """Return the seconds to add the texts of one user in one call."""
        began = time.perf_counter()
        messages = [{"role": "user", "content": text} for _, text in texts]
        self._memory.add(messages, user_id=texts[0][0], infer=False)
        return time.perf_counter() - began


def _id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def _payload(number: int) -> dict[str, str]:
    text, moment = fact(number), "2026-01-01T00:00:00+00:00"
    stored = {"data": text, "text_lemmatized": text.lower(), "hash": f"{number:032x}", "role": "user"}
    return {**stored, "user_id": user_of(number), "created_at": moment, "updated_at": moment}


if __name__ == "__main__":
    main()
