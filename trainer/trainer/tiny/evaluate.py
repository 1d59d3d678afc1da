"""Evaluates a served model: each role's turns, and whole loops, through the gateway's loop functions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from memloop.loops.memagent import read_document
from memloop.loops.memreader import FoundCall, decide, find_call
from memloop.loops.memreread import reread_document
from memloop.loops.rendering import listen
from memloop.ports import ChatModel, Completion, Prompt
from memloop.profiles import Profile
from memloop.scoring.comparison import wilson
from trainer.decisions import decided_by
from trainer.memories import HeldMemories
from trainer.tiny.conversations import Conversation, random_conversation
from trainer.tiny.curriculum import FULL, WRITING
from trainer.tiny.documents import NEAR_MISSES, TRAINED_CHUNKS, Document, random_document
from trainer.tiny.draw import draw
from trainer.tiny.example import Example
from trainer.tiny.prose import book

AT_ONCE = 24
LENGTHS = (1, 4, 16, 64)


@dataclass(frozen=True, slots=True)
class Score:
    """Right answers of a kind; an error of the engine counts as wrong."""

    name: str
    right: int
    total: int
    failed: int = 0

    @property
    def accuracy(self) -> float:
        """Return the share of right answers."""
        return self.right / self.total if self.total else 0.0

    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95 % confidence interval."""
        return wilson(self.accuracy, self.total)


Trial = Callable[[], Awaitable[bool]]


async def score(name: str, trials: Sequence[Trial]) -> Score:
    """Run the trials with bounded concurrency."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def guarded(trial: Trial) -> bool | None:
        async with gate:
            try:
                return await trial()
            except Exception:  # noqa: BLE001 -- whatever fails is a wrong answer, and is counted
                return None

    outcomes = await asyncio.gather(*(guarded(trial) for trial in trials))
    return Score(name, sum(outcome is True for outcome in outcomes), len(outcomes), outcomes.count(None))


def turn_trials(model: ChatModel, profile: Profile, rng: random.Random, *, per_kind: int) -> dict[str, list[Trial]]:
    """Make single turns of the profile's roles by kind, over held-out prose at the full chunk length."""
    mix = WRITING if "relate" in profile.prompts else FULL
    trials: dict[str, list[Trial]] = {}
    for _ in range(200 * per_kind):
        example = draw(rng, mix, profile, book("held_out"))
        kind = f"{example.role}/{example.kind}" + ("/thinking" if example.thinking else "")
        held = trials.setdefault(kind, [])
        if len(held) < per_kind:
            held.append(partial(_turn_is_right, model, profile, example))
    return dict(sorted(trials.items()))


async def _turn_is_right(model: ChatModel, profile: Profile, example: Example) -> bool:
    spec = profile.prompts["memory"]
    prompt = Prompt(
        messages=example.messages,
        sampling=spec.sampling,
        tools=example.tools,
        tool_choice=spec.tool_choice if example.tools else "auto",
        thinking=example.thinking,
    )
    reply, wanted = await model.complete(prompt), Completion(content=example.completion)
    if example.tools:
        got, gold = find_call(reply), find_call(wanted)
        return (
            isinstance(got, FoundCall)
            and isinstance(gold, FoundCall)
            and (got.name, got.arguments) == (gold.name, gold.arguments)
        )
    return listen(reply).text == listen(wanted).text


@dataclass(frozen=True, slots=True)
class _Read:
    """A kind of document to read: `times` the training length, and by which loop."""

    times: int
    hops: int
    distractors: float
    reread: bool = False
    near_misses: float = NEAR_MISSES

    @property
    def name(self) -> str:
        return f"{'memreread' if self.reread else 'memagent'}/{self.hops}-hop/{self.times}x{self._beside}"

    @property
    def _beside(self) -> str:
        if self.near_misses == 1.0:
            return "/crowded"
        return "/distractors" if self.hops == 1 and self.distractors else ""


_READS = (
    *(_Read(times, 1, 0.0) for times in LENGTHS),
    *(_Read(times, 1, 1.0) for times in LENGTHS),
    _Read(8, 1, 8.0, near_misses=1.0),
    *(_Read(times, 2, 0.2, reread) for times in LENGTHS[:2] for reread in (False, True)),
)


def loop_trials(model: ChatModel, profile: Profile, rng: random.Random, *, documents: int) -> dict[str, list[Trial]]:
    """Make whole reads at multiples of the training length, with and without distractors, and two-hop reads."""
    trials: dict[str, list[Trial]] = {}
    for read in _READS:
        made = (_document(rng, read, profile) for _ in range(documents))
        trials[read.name] = [partial(answer_is_right, model, profile, each, reread=read.reread) for each in made]
    return trials


def _document(rng: random.Random, read: _Read, profile: Profile) -> Document:
    return random_document(
        rng,
        chunks=read.times * TRAINED_CHUNKS,
        chunk_tokens=profile.budget.chunk_tokens,
        hops=read.hops,
        distractors_per_chunk=read.distractors,
        near_misses=read.near_misses,
    )


async def answer_is_right(model: ChatModel, profile: Profile, document: Document, *, reread: bool) -> bool:
    """Read the document with the loop, and compare its answer."""
    loop = reread_document if reread else read_document
    result = await loop(document.question, document.chunks, model=model, profile=profile)
    return result.answer == document.answer


def memory_trials(model: ChatModel, profile: Profile, rng: random.Random, *, count: int) -> dict[str, list[Trial]]:
    """Make whole decisions of the memory writer, including searches."""
    conversations = [random_conversation(rng) for _ in range(count)]
    trials: dict[str, list[Trial]] = {}
    for each in conversations:
        trials.setdefault(f"memreader/{each.kind}", []).append(partial(decision_is_right, model, profile, each))
    return dict(sorted(trials.items()))


async def decision_is_right(model: ChatModel, profile: Profile, conversation: Conversation) -> bool:
    """Run the memory writer on the conversation, and compare its decision."""
    result = await decide(conversation.turns, model=model, index=HeldMemories(conversation.stored), profile=profile)
    return decided_by(result.decision) == conversation.gold


async def evaluate(
    model: ChatModel, profile: Profile, *, seed: int, per_kind: int, documents: int, done: Callable[[Score], None]
) -> list[Score]:
    """Compute all scores, without those of whole reads if there are no documents; `done` is called with each."""
    rng = random.Random(seed)
    groups = {
        **turn_trials(model, profile, rng, per_kind=per_kind),
        **memory_trials(model, profile, rng, count=4 * per_kind),
        **(loop_trials(model, profile, rng, documents=documents) if documents else {}),
    }
    scores = list[Score]()
    for name, trials in groups.items():
        scores.append(await score(name, trials))
        done(scores[-1])
    return scores
