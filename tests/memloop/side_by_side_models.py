"""Model doubles for reads whose calls go side by side: slow in a random order, and counting who is in flight."""

import asyncio
import random
import re

from memloop.ports import ChatModel, Completion, Prompt
from tests.fakes.model import says


class Shuffled:
    """A ChatModel that answers after a few turns of the event loop, more or fewer by chance."""

    def __init__(self, model: ChatModel, seed: int) -> None:
        self._model = model
        self._random = random.Random(seed)
        self.in_flight = 0
        self.most_in_flight = 0

    async def complete(self, prompt: Prompt) -> Completion:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        for _ in range(self._random.randrange(6)):
            await asyncio.sleep(0)
        try:
            return await self._model.complete(prompt)
        finally:
            self.in_flight -= 1


class Collector:
    """Plays the loops by rule: the memory is every ``fact-N`` seen so far, the answer their list.

    With ``noise`` each reply also holds a number that never comes twice, as sampling would make it.
    """

    def __init__(self, *, noise: bool = False) -> None:
        self._noise = noise
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        text = prompt.messages[-1].text()
        facts = list(dict.fromkeys(re.findall(r"fact-\d+", text)))
        mark = f" draw-{len(self.prompts)}" if self._noise else ""
        if "boxed" in text:
            return says(f"\\boxed{{{' '.join(facts)}{mark}}}")
        if text.startswith("Decide"):
            return says("" if "fact-2" in facts else "<query>Which fact-2 is there?</query>")
        return says(" ".join(facts) + mark)

    def sections(self) -> list[str]:
        """The section of each read prompt."""
        texts = (prompt.messages[-1].text() for prompt in self.prompts)
        return [found[1] for text in texts if (found := re.search(r"<section>\n(.*?)\n</section>", text, re.DOTALL))]
