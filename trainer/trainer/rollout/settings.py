"""The ``memloop`` section of a recipe: what our rollouts need beyond verl's own settings."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from trainer.objectives.answer_reward import AnswerScore

LoopName: TypeAlias = Literal["memagent", "memreread", "memreader"]


class LoopSettings(BaseModel):
    """Read once in every process that runs loops or updates.

    ``profile`` is a built-in one or a folder, the one that the trained model will be served with. ``updates`` is the
    number of optimizer steps for each batch of rollouts, however many turns these have. ``objective`` is one of
    :mod:`trainer.objectives`; ``reward`` judges answers, ``decisions`` the memory writer's: as right or wrong, or in
    parts (:mod:`trainer.objectives.memreader_reward`); ``normalise_by_std`` is for grpo, ``train_final`` for amortised.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: str = "default"
    reward: AnswerScore = "strict"
    decisions: Literal["exact", "graded"] = "exact"
    objective: Literal["grpo", "amortised", "rea-grpo"] = "grpo"
    normalise_by_std: bool = False
    train_final: bool = True
    max_rereads: int = Field(default=2, ge=0, le=8)
    max_searches: int = Field(default=4, ge=0, le=16)
    updates: int = Field(default=1, ge=1)
