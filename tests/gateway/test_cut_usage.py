"""When a usage means that a prompt was cut: plausible usages of good engines never do, whatever the text."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.engine.watched import WatchedModel
from gateway.engine.window import Window
from gateway.metrics import Metrics
from memloop.chunking import EstimatingSplitter
from memloop.ports import Completion, Prompt, Sampling
from memloop.profiles import load_profile
from memloop.wire.chat import ChatMessage
from memloop.wire.errors import ContextTruncated, EngineError
from memloop.wire.memory import Usage
from memloop_clients import ServedWindow
from memloop_service import new_registry

PROSE = "The harbour lies in the north, and its boats sail at noon. "
BLOCKS = [
    PROSE * 8,
    "2026-11-27;14,235.77;0x9fe2a1;" * 16,
    "港は北にあり、船は正午に出る。" * 30,
    "        return value\n\n            if not found:\n" * 10,
    "-" * 400 + "\n" + "|" + " " * 60 + "|\n",
    "https://example.org/a/b?c=0f3e9a77d1 " * 12,
]
_TOKENS = re.compile(r" ?[A-Za-z]{1,8}|[0-9]{1,3}|\s+|[-|]{1,24}|.", re.DOTALL)


def counted(text: str) -> int:
    """Tokens as a common tokenizer has them: parts of words, groups of digits, runs of blanks, single signs."""
    return len(_TOKENS.findall(text))


@dataclass
class Counting:
    """A model that only counts. ``usage`` makes the reported prompt tokens of the text and the one before it."""

    usage: Callable[[str, str], int]
    last: str = ""
    calls: int = 0

    async def complete(self, prompt: Prompt) -> Completion:
        self.calls += 1
        text = "\n".join(message.text() for message in prompt.messages)
        asked, self.last = self.usage(text, self.last), text
        return Completion("a memory", usage=Usage(input_tokens=asked, output_tokens=2, llm_calls=1))


def uncut(model: Counting) -> tuple[WatchedModel, Window]:
    window = Window(load_profile("default"), EstimatingSplitter(), "m")

    async def states_nothing() -> ServedWindow | None:
        return ServedWindow(None)

    metrics = Metrics(new_registry())
    return WatchedModel(model, window, states_nothing, metrics, label="m", operation="long_read"), window


def prompt(text: str) -> Prompt:
    return Prompt((ChatMessage(role="user", content=text),), Sampling(max_tokens=1024))


def without_cached(text: str, last: str) -> int:
    """What an engine reports that leaves out the tokens of a cached beginning."""
    same = next((at for at, (a, b) in enumerate(zip(text, last, strict=False)) if a != b), min(len(text), len(last)))
    return max(1, counted(text[same:])) + 20


GOOD: dict[str, Callable[[str, str], int]] = {
    "all tokens": lambda text, last: counted(text) + 20,
    "a template of 300 tokens": lambda text, last: counted(text) + 300,
    "without cached tokens": without_cached,
    "none": lambda text, last: 0,
    "a constant": lambda text, last: 2048,
    "words": lambda text, last: len(text.split()),
    "characters": lambda text, last: len(text),
    "a tokenizer of characters by eight": lambda text, last: len(text) // 8,
}


@pytest.mark.parametrize("engine", GOOD)
@given(texts=st.lists(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=60).map("".join), min_size=1, max_size=6))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
async def test_no_plausible_usage_of_a_good_engine_fails_a_call(engine: str, texts: list[str]) -> None:
    model, window = uncut(Counting(GOOD[engine]))
    for text in texts:
        await model.complete(prompt(text))
    assert window.tokens is None


async def test_a_good_engine_is_seldom_asked_twice() -> None:
    engine = Counting(GOOD["all tokens"])
    model, _ = uncut(engine)
    for number in range(200):
        await model.complete(prompt(f"{number} " + PROSE * (60 + number % 40)))
    assert engine.calls <= 200 + 10


@pytest.mark.parametrize("window", [2048, 3000, 4096, 5000, 8192])
@pytest.mark.parametrize("times", [1.5, 2, 5])
async def test_an_engine_that_cuts_to_its_window_is_noticed_at_its_first_prompt(window: int, times: float) -> None:
    model, found = uncut(Counting(lambda text, last: min(counted(text) + 20, window)))
    with pytest.raises(ContextTruncated, match=f"kept {window} tokens"):
        await model.complete(prompt((PROSE * 1200)[: int(window * times * len(PROSE) / counted(PROSE))]))
    assert found.limit_tokens <= window


@pytest.mark.parametrize("window", [2048, 4096])
async def test_a_prompt_barely_over_a_round_window_is_noticed(window: int) -> None:
    model, _ = uncut(Counting(lambda text, last: min(counted(text), window)))
    text = PROSE * (window // counted(PROSE * 100) * 100)
    while counted(text) <= window:
        text += PROSE
    with pytest.raises(ContextTruncated):
        await model.complete(prompt(text))


async def test_a_reply_that_ends_at_a_round_window_is_dropped() -> None:
    class Ends:
        async def complete(self, prompt: Prompt) -> Completion:
            usage = Usage(input_tokens=3_500, output_tokens=596, llm_calls=1)
            return Completion("half a mem", finish_reason="length", usage=usage)

    model, window = uncut(Ends())  # pyright: ignore[reportArgumentType] - another model
    with pytest.raises(ContextTruncated, match="kept 4096 tokens"):
        await model.complete(prompt(PROSE * 200))
    assert window.tokens == 4096


async def test_a_refused_prompt_of_a_loop_counts_as_cut_and_its_window_is_learned() -> None:
    class Refuses:
        async def complete(self, prompt: Prompt) -> Completion:
            message = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
            raise EngineError(message, engine_status=400, code="context_length_exceeded")

    model, window = uncut(Refuses())  # pyright: ignore[reportArgumentType] - another model
    with pytest.raises(ContextTruncated, match="maximum context length"):
        await model.complete(prompt(PROSE))
    assert window.tokens == 4096


async def test_a_window_that_was_assumed_is_asked_for_again_until_it_is_known() -> None:
    stated = [None, ServedWindow(4096, "/api/show", assumed=True), ServedWindow(8192, "/api/ps")]
    window = Window(load_profile("default"), EstimatingSplitter(), "m", look_every_s=0.0)
    seen: list[tuple[int | None, int]] = []

    async def next_one() -> ServedWindow | None:
        return stated.pop(0)

    for _ in range(4):
        await window.look(next_one)
        seen.append((window.tokens, window.profile.budget.chunk_tokens))
    assert [tokens for tokens, _ in seen] == [None, 4096, 8192, 8192]
    assert [chunk == 5000 for _, chunk in seen] == [True, False, True, True]


async def test_windows_of_models_that_clients_name_are_forgotten_in_the_end() -> None:
    window = Window(load_profile("default"), EstimatingSplitter(), "m")
    first = window.of("a0")
    assert window.of("a0") is first
    for number in range(1, 500):
        window.of(f"a{number}")
    assert window.of("a0") is not first
