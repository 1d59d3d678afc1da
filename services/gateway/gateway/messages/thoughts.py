"""Thoughts in messages: signed where the client sees them, and in a block that it only sends back where it does not.

Engines whose models think between tool calls want the thoughts before a call back with it: some refuse the next step
without them. A client that did not ask for thinking gets them as ``redacted_thinking``, which every client of
Anthropic's API returns as it came and shows nowhere (docs/decisions/0157-hidden-thoughts-travel-with-their-calls.md).
"""

import base64
import binascii
from typing import Final

from memloop.wire.chat import Json

_OURS: Final = "memloop."


def signature_of(checksum: bytes) -> str:
    """Return the signature of thinking from its SHA-256. Clients send it back; nothing verifies it."""
    return base64.b64encode(checksum).decode()


def hidden_block(thought: str) -> Json:
    """Return the block that carries a thought to the next request. It is encoded, not encrypted."""
    encoded = base64.b64encode(thought.encode("utf-8", "surrogatepass")).decode()
    return {"type": "redacted_thinking", "data": _OURS + encoded}


def hidden_thought(data: str) -> str | None:
    """Return the thought of a block of ours; None for another API's, which that API alone can read."""
    if not data.startswith(_OURS):
        return None
    try:
        return base64.b64decode(data.removeprefix(_OURS), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
