"""Holds one answer while it arrives: llhttp fills it, the connection's reader empties it.

Source of the rules: RFC 9112, "HTTP/1.1"; RFC 9110, section 15.2 (interim answers).
"""

from collections.abc import Callable, Iterator, Mapping

import httptools

_MOST_HEADER_BYTES = 64 * 1024
_FIRST_FINAL_STATUS = 200
_MOST_TAKEN_BYTES = 64 * 1024
"""At a time: who relays a body holds as much of it several times, for a client that may not take it."""


class AnswerError(Exception):
    """The peer's bytes are not valid HTTP."""


class AnswerHeaders(Mapping[str, str]):
    """Maps header names, in any case, to values; the values of a repeated header are joined by commas."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower().encode("latin-1")].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._values)

    def __len__(self) -> int:
        return len(self._values)

    def add(self, name: bytes, value: bytes) -> None:
        """Add one header line."""
        name = name.lower()
        before = self._values.get(name)
        self._values[name] = value if before is None else before + b", " + value


class Answer:
    """Status and headers once ``begun``; the body's bytes in ``parts`` until they are taken; ``complete`` at its end.

    The ``on_…`` methods are called by the parser.
    """

    __slots__ = (
        "_header_bytes",
        "_parser",
        "begun",
        "complete",
        "headers",
        "keeps_alive",
        "on_body",
        "parts",
        "size",
        "status",
    )

    def __init__(self) -> None:
        self.status = 0
        self.headers = AnswerHeaders()
        self.begun = False
        self.complete = False
        self.keeps_alive = False
        """Whether the peer will answer another request on this connection."""
        self.parts: list[bytes] = []
        self.on_body: Callable[[bytes], None] = self.parts.append
        """Handle a piece of the body."""
        self.size = 0
        """Of what has arrived and is not taken, in bytes, with the frames of its chunks."""
        self._header_bytes = 0
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Parse the bytes. Raises AnswerError."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise AnswerError(str(error)) from error
        self.size += len(data)
        if not self.begun:
            self._header_bytes += len(data)
            if self._header_bytes > _MOST_HEADER_BYTES:
                raise AnswerError("endless headers")

    def take(self) -> bytes:
        """Return the body's bytes that have arrived, at most 64 KiB of them."""
        if len(self.parts) == 1 and self.size <= _MOST_TAKEN_BYTES:
            self.size = 0
            return self.parts.pop()
        data = b"".join(self.parts)
        self.parts.clear()
        if len(data) > _MOST_TAKEN_BYTES:
            self.parts.append(data[_MOST_TAKEN_BYTES:])
        self.size = max(0, len(data) - _MOST_TAKEN_BYTES)
        return data[:_MOST_TAKEN_BYTES]

    def end(self) -> None:
        """Take no more bytes: the parser and the answer refer to each other."""
        del self._parser

    def ends_with_the_connection(self) -> bool:
        """Return whether the peer marks the body's end by closing its connection."""
        named = "content-length" in self.headers or "transfer-encoding" in self.headers
        return self.begun and not named

    def on_message_begin(self) -> None:
        """Handle the first byte of an answer."""
        if self.complete:
            raise AnswerError("a second answer to one request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle one header line."""
        self.headers.add(name, value)

    def on_headers_complete(self) -> None:
        """Handle the blank line."""
        self.status = self._parser.get_status_code()
        self.begun = self.status >= _FIRST_FINAL_STATUS

    def on_message_complete(self) -> None:
        """Handle the last byte of an interim answer (1xx), which is dropped, or of the final one."""
        if self.begun:
            self.complete = True
            self.keeps_alive = self._parser.should_keep_alive()
        else:
            self.headers = AnswerHeaders()
