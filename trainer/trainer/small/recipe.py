"""The recipe of a run that teaches the small model by examples: a YAML file with known keys only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from trainer.small.kinds import English, Part
from trainer.small.mix import SHARES, Sources


class SmallSft(BaseModel):
    """``shares`` are those of the tasks, in tokens, and ``sources`` where their samples come from; ``replies`` holds
    the base's replies to general chat.

    ``begin_from`` is an adapter to go on from, as its weights alone; a checkpoint in ``output`` comes before it.
    ``tokens`` of rows end the run and bend the cosine, and so do ``seconds``, whichever come first; ``steps`` stop it
    before, to be resumed. A step takes ``rows`` rows of ``row_tokens`` tokens; ``fixed_shapes`` pads every row to that
    length and compiles the layers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    base: Path
    output: Path
    begin_from: Path | None = None
    shares: dict[str, float] = SHARES
    sources: Sources = Sources()
    kinds_of: tuple[Part, ...] = ("train", "reward")
    replies: Path | None = None
    section_words: tuple[int, ...] = (40, 80, 130, 180)
    learning_rate: float = Field(default=1e-3, gt=0)
    warmup_steps: int = Field(default=20, ge=1)
    tokens: int = Field(ge=1)
    rows: int = Field(default=8, ge=1)
    rows_at_once: int = Field(default=4, ge=1)
    row_tokens: int = Field(default=512, ge=64)
    save_s: float = Field(default=300.0, gt=0)
    steps: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0)
    fixed_shapes: bool = False
    threads: int = Field(default=2, ge=1)
    seed: int = 0

    @property
    def english(self) -> English:
        """The data to train on."""
        return English("train", kinds_of=self.kinds_of, replies_file=self.replies, section_words=self.section_words)


def load_recipe(file: Path, overrides: tuple[str, ...] = ()) -> SmallSft:
    """Load a recipe with ``KEY=VALUE`` overrides. Raises OSError and pydantic's ValidationError."""
    fields: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    for override in overrides:
        name, _, value = override.partition("=")
        fields[name] = yaml.safe_load(value)
    return SmallSft.model_validate(fields)
