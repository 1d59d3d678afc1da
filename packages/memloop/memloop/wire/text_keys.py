"""The key of a memory that was added as a text of its own, without one: equal texts are the same fact."""

import hashlib
from typing import Final

KEY_CHARS: Final = 512
_DIGEST_CHARS: Final = 12


def key_of_text(text: str) -> str:
    """Return the text if it is short, else its beginning and a digest: long texts may begin alike."""
    text = text.strip()
    if len(text) <= KEY_CHARS:
        return text
    digest = hashlib.sha256(" ".join(text.casefold().split()).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: KEY_CHARS - _DIGEST_CHARS - 1]} {digest[:_DIGEST_CHARS]}"
