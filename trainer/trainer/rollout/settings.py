"""The ``memloop`` section of a recipe: our rollouts' settings beyond verl's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from memloop.profiles import Profile, ProfileError, load_profile
from memloop.profiles.profile import PromptName
from trainer.data.rows import AgentName
from trainer.objectives.answer_reward import AnswerScore
from trainer.objectives.published import PUBLISHED, Objective, divides_by_deviation
from trainer.objectives.step_rewards import StepReward


class LoopSettings(BaseModel):
    """Settings read once in every process that runs loops or updates.

    ``profile`` is a built-in profile or a folder, the one that the trained model will be served with; ``profile_hash``
    is the hash of its content, filled in if the recipe omits it, so that all processes train on the same prompts.
    ``updates`` is the number of optimizer steps for each batch of rollouts, however many turns these have.
    ``objective`` is one of :mod:`trainer.objectives`; ``reward`` judges answers, ``decisions`` the memory writer's: as
    right or wrong, or in parts (:mod:`trainer.objectives.memreader_reward`); ``normalise_by_std`` is for grpo and
    amortised (the others fix it), ``train_final`` for amortised.

    ``loops`` are further loops that the data set's rows may name, beside the recipe's own. ``agent`` names an agent of
    your own (:mod:`trainer.rollout.agent_function`), which then runs for every row instead of a loop; ``max_calls``
    bounds its calls of the model in one run.

    ``reply_tokens`` limits replies of prompts in training, where a publication trains with other limits than it serves
    with; the profile stays the same. ``step_reward`` is for rea-grpo (:mod:`trainer.objectives.step_rewards`).

    Overlong replies (:mod:`trainer.objectives.dapo`): ``overlong_share`` is the share of a reply's limit over which a
    penalty grows, 0 for none; ``drop_truncated`` excludes the tokens of truncated replies from the loss.

    ``live_rows_only`` excludes rows without an advantage from the update: groups whose rollouts were all right or all
    wrong have no gradient, and cost as much as others. The loss is then a mean over the live tokens alone.

    ``checkpoints`` is the URL for storing and fetching complete checkpoints beside the disk: ``s3://bucket/prefix`` (by
    the ``AWS_*`` variables), ``gs://``, ``az://``, ``file:///folder``.

    ``placement_timeout_s`` bounds each wait for Ray to place the run's processes, which other runs may hold up.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: str = "default"
    profile_hash: str | None = None
    reward: AnswerScore = "strict"
    decisions: Literal["exact", "graded"] = "exact"
    objective: Objective = "grpo"
    normalise_by_std: bool = False
    train_final: bool = True
    loops: tuple[AgentName, ...] = ()
    agent: str | None = None
    max_calls: int = Field(default=64, ge=1)
    max_rereads: int = Field(default=2, ge=0, le=8)
    max_searches: int = Field(default=4, ge=0, le=16)
    updates: int = Field(default=1, ge=1)
    reply_tokens: dict[PromptName, Annotated[int, Field(ge=1)]] = Field(default_factory=dict[PromptName, int])
    step_reward: StepReward = "memory_gain"
    overlong_share: float = Field(default=0.0, ge=0, le=1)
    drop_truncated: bool = False
    live_rows_only: bool = False
    checkpoints: str | None = None
    placement_timeout_s: float = Field(default=600.0, gt=0)

    def loaded(self) -> Profile:
        """Load the profile. Raises ProfileError when it is missing or its content differs from the recipe's."""
        profile = load_profile(self.profile)
        if self.profile_hash not in (None, profile.content_hash):
            raise ProfileError(
                f"the profile {self.profile} has the content {profile.content_hash}, "
                f"and the run is for {self.profile_hash}"
            )
        if unknown := sorted(self.reply_tokens.keys() - profile.prompts.keys()):
            raise ProfileError(f"reply_tokens names {', '.join(unknown)}, which {self.profile} has no prompt for")
        limited = {
            name: profile.prompts[name].limited(min(most, profile.prompts[name].sampling.max_tokens))
            for name, most in self.reply_tokens.items()
        }
        return replace(profile, prompts={**profile.prompts, **limited}) if limited else profile

    def pinned(self) -> Self:
        """Return a copy with the profile's hash. Raises ProfileError as ``loaded``."""
        return self.model_copy(update={"profile_hash": self.loaded().content_hash})

    @property
    def deviation(self) -> bool:
        """Return whether advantages are divided by the deviation of their group."""
        return divides_by_deviation(self.objective, chosen=self.normalise_by_std)

    @model_validator(mode="after")
    def _as_published(self) -> Self:
        published = PUBLISHED[self.objective]
        if self.normalise_by_std and (published.deviation is False or published.any_group):
            raise ValueError(f"{self.objective} does not divide by the deviation: leave normalise_by_std out")
        return self

    @model_validator(mode="after")
    def _an_agents_reads_are_unknown(self) -> Self:
        if self.agent and self.objective == "rea-grpo":
            raise ValueError("rea-grpo compares the reads of our reading loops, which an agent does not report")
        return self

    @model_validator(mode="after")
    def _right_stays_right(self) -> Self:
        if self.objective == "rea-grpo" and self.overlong_share:
            raise ValueError("rea-grpo derives correctness from the reward, which overlong_share would change")
        return self
