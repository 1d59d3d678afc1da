"""How much a JSON body grows when it is parsed, seen before it is.

Each object, list, key and element costs 50 to 200 bytes in memory, though ``{},`` has three in the body. So brackets,
braces, commas and colons are counted first, at the speed of C. Those in a string cost nothing: a body that seems to
have too many is counted again without its strings.
"""

from typing import Final

from memloop.wire.errors import Unprocessable

MOST_PARTS: Final = 300_000
"""Values of one body: as many as the tokens that an embeddings request may have."""
_MOST_QUOTES: Final = 4 * MOST_PARTS
_BYTES_OF_MOST_PARTS: Final = 3 * MOST_PARTS // 2
"""A shorter body cannot hold so many: ``[],`` is the densest JSON, two parts in three bytes."""


def refuse_too_many_parts(raw: bytes) -> None:
    """Raises Unprocessable (422) for a body that would take hundreds of megabytes as objects."""
    if len(raw) > _BYTES_OF_MOST_PARTS and _parts(raw) > MOST_PARTS and _has_too_many(raw):
        message = f"The body has more than {MOST_PARTS} values. Send several requests."
        raise Unprocessable(message, code="too_many_values")


def _parts(raw: bytes) -> int:
    return sum(map(raw.count, (b"[", b"{", b",", b":")))


def _has_too_many(raw: bytes) -> bool:
    """Return whether there are too many outside of strings, or too many strings to look."""
    plain = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    return plain.count(b'"') > _MOST_QUOTES or _parts(b" ".join(plain.split(b'"')[::2])) > MOST_PARTS
