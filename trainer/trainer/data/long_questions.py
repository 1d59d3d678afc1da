"""Makes the data set of long documents around a user's questions: ``train.parquet``, ``dev.parquet`` and a card."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memloop.wire.chat import Json
from trainer.data.card import Card
from trainer.data.hotpot import HotpotQuestion, questions
from trainer.data.json_rows import DataError
from trainer.data.parquet import write_parquet
from trainer.data.pool import DiskPool, Pool
from trainer.data.progress import Progress
from trainer.data.rows import AgentName, reading_row
from trainer.data.schemas import READING
from trainer.data.synthesis import Size, compose

COLUMNS = {
    "data_source": "source of the question",
    "prompt": "the question, as one user message",
    "context": "the documents as one text, numbered from 1",
    "ability": "`memory`",
    "reward_model": "`style` rule, and the right answers as `ground_truth`",
    "extra_info": "`index`, the question's `id` and text, `num_docs`, and the numbers of the documents with the facts",
    "agent_name": "the loop that reads it",
}


@dataclass(frozen=True, slots=True)
class LongQuestions:
    """What to make: ``train`` and then ``dev`` items from the questions in order, distractors from ``pools``."""

    asked: Path
    pools: tuple[Path, ...]
    size: Size
    train: int
    dev: int
    seed: int = 0
    agent: AgentName = "memagent"
    data_source: str = "hotpotqa"
    license: str = "other"

    def make(self, out: Path, *, options: dict[str, object], progress: Progress) -> dict[str, int]:
        """Write the files; return each one's row count. Raises DataError, also for too few questions."""
        asked = questions(self.asked)
        with DiskPool.of(self.pools or (self.asked,)) as pool:
            made = {
                split: self._write(split, count, asked, pool, out, progress)
                for split, count in (("train", self.train), ("dev", self.dev))
                if count
            }
        Card(
            name=f"{self.data_source}, long",
            what=(
                "Questions, each with a long text of numbered documents: the question's own paragraphs, its evidence "
                "at any place, and others drawn from the whole pool, no title twice."
            ),
            license=self.license,
            made_by=options,
            files={split: (f"{split}.parquet", count) for split, count in made.items()},
            columns=COLUMNS,
        ).write(out)
        return made

    def _write(
        self, split: str, count: int, asked: Iterator[HotpotQuestion], pool: Pool, out: Path, progress: Progress
    ) -> int:
        rows = progress.over(self._rows(split, count, asked, pool), total=count, what=split)
        return write_parquet(rows, out / f"{split}.parquet", READING)

    def _rows(self, split: str, count: int, asked: Iterator[HotpotQuestion], pool: Pool) -> Iterator[Json]:
        for index in range(count):
            question = next(asked, None)
            if question is None:
                raise DataError(f"{self.asked} has too few questions: of {count} as {split} it has {index}")
            item = compose(question, pool, self.size, random.Random(f"{self.seed} {split} {index}"))
            yield reading_row(
                data_source=self.data_source,
                index=index,
                id_=item.id or f"{split}-{index}",
                question=item.question,
                answers=[item.answer],
                context=item.context,
                agent=self.agent,
                documents=len(item.documents),
                evidence=item.evidence,
            )
