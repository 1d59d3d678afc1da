"""Notices that an engine answered a chat of which it can have read only a part.

Ollama's OpenAI route and some proxies drop the beginning of a chat that exceeds their window, and answer 200. Where the
window is known, two counts show it: ours of the client's own messages is beyond the window, and the engine's is not. No
call is made for it, and the answer stays as it is.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from gateway.engine import LoopModel
from gateway.metrics import Metrics
from memloop.wire.chat import Json, SentMessage
from memloop_service.chores import computed

_LOG = logging.getLogger(__name__)
_LEAST_CHARS: Final = 900
"""No window in use is exceeded by less: a token has a character at least."""
_SURELY: Final = 0.8
"""An engine that counts less than this part of our tokens has not read the others: tokenizers differ by less."""


async def cut_note(model: LoopModel, messages: Sequence[SentMessage], usage: Json, metrics: Metrics) -> str | None:
    """Return the sentence for the client of a chat that the engine cut; None where it read the whole, as far as known.

    Counts and logs such a chat. ``usage`` is the engine's.
    """
    kept = usage.get("prompt_tokens")
    texts = [message.text() for message in messages]
    chars = sum(map(len, texts))
    if not isinstance(kept, int) or kept <= 0 or chars < _LEAST_CHARS:
        return None
    await model.look()
    window = model.window_tokens
    if window is None or not kept <= window < chars:
        return None
    tokens = await computed(partial(model.splitter.count, "\n".join(texts)), chars=chars)
    if tokens <= window or kept >= _SURELY * tokens:
        return None
    metrics.chats_cut.labels(model.label).inc()
    _LOG.warning("the model %s read %d of about %d tokens of a chat: its window is %d", model.id, kept, tokens, window)
    return (
        f"The engine read only {kept} of about {tokens} tokens of this chat: its window has {window}."
        " Send less, enlarge the window, or set memory.long_context to auto."
    )
