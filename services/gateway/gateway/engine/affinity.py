"""Sends the prompts of one read to the replica that has cached what they begin with."""

from dataclasses import dataclass, replace

from memloop.ports import ChatModel, Completion, Prompt


@dataclass(frozen=True, slots=True)
class Affine:
    """A ChatModel whose prompts have the key of one document; each segment of those read side by side has its own.

    The key comes from the record of the read, never from a field of the client's request.
    """

    model: ChatModel
    key: str

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the inner model's reply."""
        return await self.model.complete(replace(prompt, affinity=self.key + _segment(prompt.branch)))


def _segment(branch: str) -> str:
    """Return the branch of the segment (``s3``); the questions of one document share its key."""
    first = branch.partition("/")[0]
    return f"/{first}" if first.startswith("s") else ""
