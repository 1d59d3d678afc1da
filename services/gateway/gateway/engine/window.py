"""A model's real window, and its prompt profile with the sizes that fit it.

The window comes from a setting, the launcher or the endpoint's own statement, and becomes smaller once the endpoint cut
a prompt. Until it is known, the profile's own window is assumed.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Final

from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.profiles import Profile, ProfileError, fit, sizes
from memloop_clients import ServedWindow

_LOG = logging.getLogger(__name__)
_MOST_MODELS: Final = 64
"""Windows of models that clients name without a models file; those named longest ago are forgotten."""
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
    settled: bool = False
    """Whether the endpoint need not be asked any more."""
    _advice: str = ""
    _looked_at: float = float("-inf")
    of: Callable[[str], "Window"] = field(init=False, compare=False, repr=False)
    """Returns the window of another model at the same endpoint, with the same profile and tokenizer."""

    def __post_init__(self) -> None:
        self.profile = self.own
        self.of = lru_cache(_MOST_MODELS)(partial(Window, self.own, self.tokenizer))

    @property
    def limit_tokens(self) -> int:
        """The window that prompts are made for."""
        return self.tokens or self.own.budget.window_tokens

    def set(self, tokens: int, source: str, *, advice: str = "", settled: bool = True) -> None:
        """Fit the profile to a window that is now known, and log the sizes. Raises ProfileError when none fits."""
        self.settled = settled
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
        if self.settled or time.monotonic() - self._looked_at < self.look_every_s:
            return
        self._looked_at = time.monotonic()
        found = await ask()
        if found is None or self.settled:
            return
        if found.tokens is None:
            self.settled = not found.assumed
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
