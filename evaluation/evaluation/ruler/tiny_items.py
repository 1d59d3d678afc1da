"""Makes RULER items from the tiny model's world: a fact among distracting ones, in held-out prose of a given length."""

import random
from collections.abc import Iterator

from memloop.wire.chat import Json
from trainer.tiny.documents import random_document

TASK = "niah_single_1"
_SECTION_TOKENS = 240
_DISTRACTORS_PER_SECTION = 0.5


def tiny_items(*, tokens: int, seed: int, count: int) -> Iterator[Json]:
    """Yield rows of RULER's format whose documents have about ``tokens`` tokens of the tiny model."""
    sections = max(1, round(tokens / _SECTION_TOKENS))
    for index in range(count):
        document = random_document(
            random.Random(f"{seed} {tokens} {index}"),
            chunks=sections,
            chunk_tokens=_SECTION_TOKENS,
            hops=1,
            distractors_per_chunk=_DISTRACTORS_PER_SECTION,
        )
        yield {
            "index": index,
            "input": document.question,
            "context": "".join(chunk.text for chunk in document.chunks),
            "outputs": [document.answer],
        }
