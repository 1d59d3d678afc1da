"""The two files that the model card is written from."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

TRAINING, EVALUATION = "training.json", "evaluation.json"


class TrainingLog(BaseModel):
    """`training.json`: a run's settings and progress. `exact` is right and all turns by kind, at the end.

    `start` is the log of the checkpoint that the run started from.
    """

    budget: str
    seed: int
    device: str
    profile: str
    parameters: int
    chunk_tokens: int
    steps: int
    batch_tokens: int
    seconds: int = 0
    tokens: int = 0
    exact: dict[str, tuple[int, int]] = {}
    losses: tuple[tuple[int, float], ...] = ()
    start: TrainingLog | None = None

    def after(
        self, step: int, seconds: int, tokens: int, loss: float, exact: dict[str, tuple[int, int]]
    ) -> TrainingLog:
        """Return the log with one more report."""
        losses = (*self.losses, (step, loss))
        return self.model_copy(update={"seconds": seconds, "tokens": tokens, "exact": exact, "losses": losses})


class ScoreRow(BaseModel):
    """One line of the evaluation."""

    name: str
    right: int
    total: int
    failed: int
    accuracy: float
    low: float
    high: float


class Evaluation(BaseModel):
    """`evaluation.json`: scores of the served checkpoint."""

    seed: int
    chunk_tokens: int
    scores: list[ScoreRow]


def read_training(folder: Path) -> TrainingLog:
    """Read the training log of a checkpoint."""
    return TrainingLog.model_validate_json((folder / TRAINING).read_text("utf-8"))


def read_evaluation(folder: Path) -> Evaluation | None:
    """Read the evaluation of a checkpoint; None if it has none."""
    path = folder / EVALUATION
    return Evaluation.model_validate_json(path.read_text("utf-8")) if path.is_file() else None
