"""Makes RULER-HQA items of any size from a HotpotQA file, as rows of the published format."""

import random
from collections.abc import Iterator, Sequence

from memloop.wire.chat import Json
from trainer.data.hotpot import HotpotQuestion
from trainer.data.synthesis import Size, compose


def synthesise(questions: Sequence[HotpotQuestion], *, documents: int, seed: int, count: int) -> Iterator[Json]:
    """Yield rows for the first ``count`` questions, each with exactly ``documents`` documents.

    ``evidence`` holds the numbers (from 1) of the documents with the facts. Raises DataError when the file has too few
    paragraphs, or a question has more evidence than ``documents``.
    """
    pool = list(
        {title: paragraph for question in questions for title, paragraph in question.paragraphs.items()}.values()
    )
    for index, question in enumerate(questions[:count]):
        item = compose(question, pool, Size(documents=documents), random.Random(f"{seed} {documents} {index}"))
        yield {
            "index": index,
            "input": item.question,
            "context": item.context,
            "answers": [item.answer],
            "num_docs": len(item.documents),
            "evidence": list(item.evidence),
        }
