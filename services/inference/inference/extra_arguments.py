"""Arguments that a user adds to the engine's command line."""

import shlex
from typing import Final

from inference.settings import SettingsRefused

_OWNED: Final = frozenset({"--host", "--port", "--model", "--model-path", "--served-model-name", "--api-key"})


def extra_arguments(text: str) -> tuple[str, ...]:
    """Split ``text`` as a shell does. Raises SettingsRefused for what other settings decide, or for an open quote."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise SettingsRefused(f"MEMLOOP_SERVE_EXTRA_ARGS: {error}") from error
    taken = sorted({word.partition("=")[0] for word in words} & _OWNED)
    if taken:
        raise SettingsRefused(f"MEMLOOP_SERVE_EXTRA_ARGS: other settings decide {', '.join(taken)}")
    return words
