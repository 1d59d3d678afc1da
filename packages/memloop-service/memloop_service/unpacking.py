"""Unpacks a request's body that its client has packed: ``Content-Encoding: gzip``, ``deflate`` or ``zstd``.

Packed bytes go in by such small slices that none of them can unpack to much, whatever its client has packed: 256 KiB
with gzip and deflate, 8 MiB with zstd. So a bomb is refused by the limit of bodies before it takes memory or time.
"""

import zlib
from collections.abc import Callable
from typing import Any, Final

from backports import zstd

from memloop.wire.errors import InvalidRequest
from memloop_service.errors import RouteError

_SLICE_BYTES: Final = 256
_PIECE_BYTES: Final = 256 * 1024
"""A piece is handed on from this size on: the process can answer others in between."""
_WINDOW_LOG: Final = 23
"""2 to this power is the most bytes that a sender may need of the memory of a receiver (RFC 9659)."""
_ZLIB_HEADER: Final = 0x8
"""The low half of the first byte of zlib's form; without it, ``deflate`` is the bare stream that some clients send."""


_ENCODINGS: Final[dict[str, Callable[[bytes], Any]]] = {
    "gzip": lambda first: zlib.decompressobj(zlib.MAX_WBITS | 16),
    "x-gzip": lambda first: zlib.decompressobj(zlib.MAX_WBITS | 16),
    "deflate": lambda first: zlib.decompressobj(zlib.MAX_WBITS if first[0] & 0xF == _ZLIB_HEADER else -zlib.MAX_WBITS),
    "zstd": lambda first: zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}),
}
"""By name, what makes a decompressor of a stream that begins so; both modules' have the same methods."""
_PLAIN: Final = frozenset({"", "identity"})


class Unpacking:
    """Unpacks one body, which may be several packed streams, one behind another."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._stream: Any = None
        self._packed = b""

    @property
    def has_more(self) -> bool:
        """Whether ``piece`` can go on without more of the client's bytes."""
        return bool(self._packed)

    def piece(self, packed: bytes) -> bytes:
        """Take what the client has sent, return what comes next. Raises InvalidRequest for bytes in another form."""
        self._packed += packed
        pieces, size, at = list[bytes](), 0, 0
        try:
            while at < len(self._packed) and size < _PIECE_BYTES:
                packed = self._packed[at : at + _SLICE_BYTES]
                if self._stream is None or self._stream.eof:
                    self._stream = _ENCODINGS[self._encoding](packed)
                pieces.append(self._stream.decompress(packed))
                size += len(pieces[-1])
                at += len(packed) - len(self._stream.unused_data)
        except (zlib.error, zstd.ZstdError):
            raise self._damaged() from None
        self._packed = self._packed[at:]
        return b"".join(pieces)

    def end(self) -> None:
        """Raise InvalidRequest for a body that stops in its middle."""
        if self._stream is not None and not self._stream.eof:
            raise self._damaged()

    def _damaged(self) -> InvalidRequest:
        return InvalidRequest(
            f"The body is not whole in the form that its Content-Encoding names, {self._encoding}.",
            param="content-encoding",
            code="invalid_encoding",
        )


def unpacking_of(encoding: str) -> Unpacking | None:
    """Return what unpacks a body with this header; None for one that is sent as it is. Raises RouteError (415)."""
    named = encoding.strip().lower()
    if named in _PLAIN:
        return None
    if named not in _ENCODINGS:
        accepted = ", ".join(name for name in _ENCODINGS if not name.startswith("x-"))
        message = f"Bodies may be packed with {accepted}, one of them at a time."
        raise RouteError(415, message, {"Accept-Encoding": accepted})
    return Unpacking(named)
