"""Splits a read between two models: one reads and answers, another judges whether the memory suffices."""

from dataclasses import dataclass, replace

from memloop.loops.journal import Journaled
from memloop.ports import ChatModel, Checkpoints, Completion, Prompt
from memloop.profiles import Profile


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model and its id; the journal's replies belong to that id."""

    id: str
    model: ChatModel

    def journaled(self, checkpoints: Checkpoints | None) -> ChatModel:
        """Return the model, called only for replies that these checkpoints lack."""
        return self.model if checkpoints is None else Journaled(self.model, _OfModel(checkpoints, self.id))


@dataclass(frozen=True, slots=True)
class JudgedApart:
    """A ChatModel whose judge prompts go to another model."""

    reader: ChatModel
    judge: ChatModel

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply of the model that the prompt is for."""
        return await (self.judge if prompt.name == "judge" else self.reader).complete(prompt)


def judged_by(profile: Profile, judge: Profile) -> Profile:
    """Return the reader's profile with the judge's own prompt."""
    prompts = {**profile.prompts, "judge": judge.prompts["judge"]}
    return replace(profile, prompts=prompts, no_history=judge.no_history)


@dataclass(frozen=True, slots=True)
class _OfModel:
    """The checkpoints of one model: another model's replies to the same prompts are not used."""

    checkpoints: Checkpoints
    model_id: str

    async def load(self, key: str) -> Completion | None:
        return await self.checkpoints.load(f"{self.model_id}:{key}")

    async def save(self, key: str, completion: Completion) -> None:
        await self.checkpoints.save(f"{self.model_id}:{key}", completion)
