"""A model's real window, its prompt profile with the sizes that fit it, and prompts that an engine read only in part.

The window comes from a setting, the launcher or the endpoint's own statement, and becomes smaller once the endpoint cut
a prompt. Until it is known, the profile's own window is assumed.

Some engines cut a prompt that exceeds their window and answer 200: Ollama's OpenAI route, llama.cpp with its context
shift, proxies. Such a call fails in place of a reply to half a text. Usage shows it: far fewer tokens than such a text
has, or exactly a round window. Usage is odd in other ways, too (cached tokens left out, constants, other tokenizers):
a suspicion is checked before it counts. Two calls of one token show how many tokens a part of the same text has, and a
third whether a longer prompt has more.
"""

import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.metrics import Metrics
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.ports import ChatModel, Completion, Prompt
from memloop.profiles import Profile, ProfileError, check_fit, fit, sizes
from memloop.wire.chat import ChatMessage
from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, ContextTruncated, DependencyError, EngineError
from memloop_clients import ServedWindow
from memloop_clients.refusals import overflow_of

_LOG = logging.getLogger(__name__)
_MOST_MODELS: Final = 64
"""Windows of models that clients name without a models file; the oldest is forgotten beyond that."""
Ask = Callable[[], Awaitable[ServedWindow | None]]


@dataclass(slots=True)
class Measured:
    """What usage showed: most tokens of a prompt, most characters of a token, and the suspicion that was wrong last."""

    most_tokens: int = 0
    chars_per_token: float = 3.5
    cleared_tokens: int = 0


@dataclass(slots=True)
class Window:
    """The window of one model. ``profile`` changes with it; whoever plans reads it again. Times are in seconds."""

    own: Profile
    tokenizer: TokenizerSplitter | EstimatingSplitter
    model: str
    show: Callable[[int], object] = lambda tokens: None
    tokens: int | None = None
    look_every_s: float = 30.0
    measured: Measured = field(default_factory=Measured)
    profile: Profile = field(init=False)
    """The profile with the sizes that fit the window as far as it is known."""
    _settled: bool = False
    _advice: str = ""
    _looked_at: float = float("-inf")
    _others: dict[str, "Window"] = field(default_factory=dict[str, "Window"])

    def __post_init__(self) -> None:
        self.profile = self.own

    @property
    def limit_tokens(self) -> int:
        """The window that prompts are made for."""
        return self.tokens or self.own.budget.window_tokens

    def check(self) -> None:
        """Raise ProfileError when the profile's texts do not fit the tokenizer."""
        check_fit(self.own, self.tokenizer, window_tokens=None)

    def set(self, tokens: int, source: str, *, advice: str = "", settled: bool = True) -> None:
        """Fit the profile to a window that is now known, and log the sizes. Raises ProfileError when none fits."""
        self._settled = settled
        if tokens == self.tokens:
            return
        self.profile = fit(self.own, self.tokenizer, window_tokens=tokens)
        self.tokens, self._advice = tokens, advice if tokens < self.own.budget.window_tokens else ""
        self.show(tokens)
        _LOG.info(
            "the model %s has a window of %d tokens (%s); the profile %s reads with %s%s",
            self.model,
            tokens,
            source,
            self.own.ref,
            sizes(self.profile, self.own),
            f". {self._advice}" if self._advice else "",
        )

    async def look(self, ask: Ask) -> None:
        """Ask the endpoint, unless the window is settled or was asked for lately.

        A window that is too small for the profile is logged and shown by readiness; the profile stays as it is.
        """
        if self._settled or time.monotonic() - self._looked_at < self.look_every_s:
            return
        self._looked_at = time.monotonic()
        found = await ask()
        if found is None or self._settled:
            return
        if found.tokens is None:
            self._settled = not found.assumed
            return
        try:
            self.set(found.tokens, found.source, advice=found.advice, settled=not found.assumed)
        except ProfileError as error:
            self._advice = f"{error}. {found.advice}"
            _LOG.error("the model %s: %s", self.model, self._advice)

    def shrink(self, kept_tokens: int) -> None:
        """Make later prompts for a window of which the endpoint kept so many tokens.

        Some endpoints keep no more than half of what fits: where the profile does not fit the tokens that were kept,
        the window is one and a half times as large, or twice. It never grows, and stays where no size fits.
        """
        for tokens in (kept_tokens, kept_tokens * 3 // 2, kept_tokens * 2):
            if tokens >= self.limit_tokens:
                break
            try:
                self.set(tokens, "it cut a longer prompt")
            except ProfileError as error:
                _LOG.warning("the model %s cut a prompt: %s", self.model, error)
            else:
                break

    def warning(self) -> str | None:
        """Return the way to a larger window where the endpoint has one, for readiness."""
        return self._advice or None

    def of(self, model: str) -> "Window":
        """Return the window of another model at the same endpoint, with the same profile and tokenizer."""
        if model not in self._others:
            if len(self._others) >= _MOST_MODELS:
                del self._others[next(iter(self._others))]
            self._others[model] = Window(self.own, self.tokenizer, model)
        return self._others[model]


_LEAST_TOKENS: Final = 900
"""No window in use keeps less of a prompt that exceeds it."""
_ROUND_TOKENS: Final = 256
_ROUND_TOTAL: Final = 1024
_FAR: Final = 1.3
"""So many times the usual characters of a token are suspicious, …"""
_SURELY: Final = 1.35
"""… and so many times those of a part of the same text are a cut."""
_PART_CHARS: Final = 2_400
_SLICES: Final = 16


class Uncut:
    """A ChatModel that raises ContextTruncated when its engine cut the prompt. Put it inside a ``Journaled``."""

    def __init__(self, model: ChatModel, window: Window, ask: Ask, metrics: Metrics, *, label: str) -> None:
        """``ask`` asks the endpoint for the window, ``label`` names the model in metrics."""
        self._model = model
        self._window = window
        self._ask = ask
        self._metrics = metrics
        self._label = label

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the inner model's reply. Raises ContextTruncated, and the inner model's errors."""
        try:
            completion = await self._model.complete(prompt)
        except EngineError as error:
            if error.code != CONTEXT_LENGTH_EXCEEDED:
                raise
            stated = overflow_of(error.message)
            if stated and stated.window_tokens and stated.window_tokens < self._window.limit_tokens:
                self._window.shrink(stated.window_tokens)
            raise ContextTruncated(error.message) from error
        kept = await self._kept(prompt, completion)
        if kept is not None:
            self._metrics.prompts_cut.labels(self._label).inc()
            self._window.shrink(kept)
            raise ContextTruncated(
                f"The engine cut a prompt: it kept {kept} tokens, and its reply is dropped. Later prompts are shorter;"
                " enlarge the model's window, or set MEMLOOP_WINDOW_TOKENS to it."
            )
        await self._window.look(self._ask)
        return completion

    async def _kept(self, prompt: Prompt, completion: Completion) -> int | None:
        """Return the tokens that the engine kept of a prompt, or of prompt and reply, that it cut; else None."""
        asked, replied, measured = completion.usage.input_tokens, completion.usage.output_tokens, self._window.measured
        if asked < _LEAST_TOKENS:
            return None
        if completion.finish_reason == "length" and replied < prompt.sampling.max_tokens:
            total = asked + replied
            if total % _ROUND_TOTAL in (0, _ROUND_TOTAL - 1) or total == self._window.tokens:
                return total
        text = "\n".join(message.text() for message in prompt.messages)
        far = len(text) > _FAR * measured.chars_per_token * asked
        full = asked >= measured.most_tokens and (asked % _ROUND_TOKENS == 0 or asked == measured.most_tokens)
        # An engine that cuts keeps at least half of its window: what is much shorter than another prompt is whole.
        suspicious = (far or full) and 2 * asked >= measured.most_tokens and asked != measured.cleared_tokens
        measured.most_tokens = max(measured.most_tokens, asked)
        if suspicious and await self._is_cut(prompt, text, asked):
            return asked
        measured.cleared_tokens = asked if suspicious else measured.cleared_tokens
        measured.chars_per_token = max(measured.chars_per_token, len(text) / asked)
        return None

    async def _is_cut(self, prompt: Prompt, text: str, asked: int) -> bool:
        # Slices from all over the text, which are as dense as the whole
        size = min(_PART_CHARS, len(text) // 3) // _SLICES
        part = "".join(text[place * len(text) // _SLICES :][:size] for place in range(_SLICES))
        short = replace(
            prompt, tools=(), tool_choice="auto", reply=None, sampling=replace(prompt.sampling, max_tokens=1)
        )
        around, alone = [
            await self._count(replace(short, messages=(ChatMessage(role="user", content=_marked(some)),)))
            for some in ("", part)
        ]
        *before, last = prompt.messages
        more = last.model_copy(update={"content": _marked(last.text())})
        longer = await self._count(replace(prompt, messages=(*before, more)))  # some keep what the reply leaves
        if not 0 < around < alone < longer or longer < _LEAST_TOKENS:
            return False
        if longer <= asked:  # more text, and not one token more
            return True
        return len(text) / (longer - around) > _SURELY * len(part) / (alone - around)

    async def _count(self, prompt: Prompt) -> int:
        """Return how many tokens the engine counts; 0 where it does not answer."""
        try:
            counted = await self._model.complete(prompt)
        except DependencyError:
            return 0
        return counted.usage.input_tokens


def _marked(text: str) -> str:
    """Return the text behind a mark of its own, so that nothing of it is in a cache."""
    return f"{secrets.token_hex(8)}\n{text}"
