"""A read by two models: one reads and answers, another judges whether the memory suffices."""

from dataclasses import dataclass, replace

from memloop.loops.journal import Journaled
from memloop.ports import ChatModel, Checkpoints, Completion, Prompt
from memloop.profiles import Profile


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model with its id, to which the replies in a journal are tied."""

    id: str
    model: ChatModel

    def journaled(self, checkpoints: Checkpoints | None) -> ChatModel:
        """The model, asked only for what these checkpoints do not hold of it."""
        return self.model if checkpoints is None else Journaled(self.model, _OfModel(checkpoints, self.id))


@dataclass(frozen=True, slots=True)
class JudgedApart:
    """A ChatModel whose judge prompts go to another model."""

    reader: ChatModel
    judge: ChatModel

    async def complete(self, prompt: Prompt) -> Completion:
        """The reply of the model that the prompt is for."""
        return await (self.judge if prompt.name == "judge" else self.reader).complete(prompt)


def judged_by(profile: Profile, judge: Profile) -> Profile:
    """The reader's profile with the judge's own prompt."""
    prompts = {**profile.prompts, "judge": judge.prompts["judge"]}
    return replace(profile, prompts=prompts, no_history=judge.no_history)


@dataclass(frozen=True, slots=True)
class _OfModel:
    """Checkpoints of one model: another one's replies to the same prompts are not found."""

    checkpoints: Checkpoints
    model_id: str

    async def load(self, key: str) -> Completion | None:
        return await self.checkpoints.load(f"{self.model_id}:{key}")

    async def save(self, key: str, completion: Completion) -> None:
        await self.checkpoints.save(f"{self.model_id}:{key}", completion)
