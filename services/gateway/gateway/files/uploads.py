"""Parses a multipart upload as it arrives and streams the file to the storage."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import unquote_to_bytes

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from gateway.files.blobs import Blob, Blobs
from memloop.wire.errors import InvalidRequest, Unprocessable
from memloop.wire.fields import named

_FIELD_BYTES: Final = 1024
_MEDIA_TYPE_CHARS: Final = 255
_EXTENDED_NAME: Final = re.compile(rb"""filename\*\s*=\s*utf-8'[^'"]*'([^;\s"]*)""", re.IGNORECASE)
"""RFC 8187, as some clients write a name that is not ASCII."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A received upload: the unclaimed content and the form's other fields."""

    content: Blob
    filename: str
    media_type: str
    fields: dict[str, str] = field(default_factory=dict[str, str])


async def receive_upload(
    blocks: AsyncIterator[bytes], *, content_type: str, tenant: str, blobs: Blobs, max_bytes: int
) -> Upload:
    """Stream the form's single ``file`` to the storage; delete it again on any error.

    Raises InvalidRequest for a malformed or truncated form, Unprocessable for one without a file, or with an empty one,
    TooLarge, Unavailable.
    """
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise InvalidRequest("Send the file as multipart/form-data.", code="invalid_multipart")
    parts = _Parts(options[b"boundary"])

    async def file() -> AsyncIterator[bytes]:
        size = 0
        async for block in blocks:
            for data in parts.feed(block):
                size += len(data)
                yield data
        if not parts.ended:
            raise InvalidRequest("The form is truncated.", code="invalid_multipart")
        if parts.files != 1:
            raise Unprocessable("Send exactly one file.", param="file")
        if size == 0:
            raise Unprocessable("The file is empty.", param="file", code="empty_file")

    content = await blobs.written(tenant, file(), max_bytes=max_bytes, param="file")
    return Upload(
        content=content,
        filename=parts.filename,
        media_type=parts.media_type,
        fields={name: value.decode("utf-8", "replace") for name, value in parts.fields.items()},
    )


class _Parts:
    """Parses the form's parts: passes the data of ``file`` on and keeps small fields."""

    def __init__(self, boundary: bytes) -> None:
        self.fields = dict[str, bytes]()
        self.filename = self.media_type = ""
        self.files, self.ended = 0, False
        self._name, self._header, self._value = "", b"", b""
        self._headers = dict[str, bytes]()
        self._out: list[bytes] = []
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._headers.clear,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._part_begins,
                "on_part_data": self._part_data,
                "on_end": partial(setattr, self, "ended", True),
            },
        )

    def feed(self, block: bytes) -> list[bytes]:
        """Return the file's bytes in this block of the body. Raises InvalidRequest."""
        self._out = []
        try:
            self._parser.write(block)
        except FormParserError as error:
            raise InvalidRequest(f"The form is malformed: {error}", code="invalid_multipart") from error
        return self._out

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._headers[self._header.decode("latin-1").lower()] = self._value
        self._header, self._value = b"", b""

    def _part_begins(self) -> None:
        disposition = self._headers.get("content-disposition", b"")
        _, options = parse_options_header(disposition)
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        if self._name == "file":
            self.files += 1
            extended = _EXTENDED_NAME.search(disposition)
            path = unquote_to_bytes(extended[1]) if extended else options.get(b"filename", b"")
            name = path.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2]
            self.filename = named(name, param="file") if name else "file"
            self.media_type = self._headers.get("content-type", b"").decode("latin-1")[:_MEDIA_TYPE_CHARS]
        elif len(self.fields) >= 16:
            raise Unprocessable("The form has too many fields.")
        else:
            self.fields[self._name] = b""

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._name == "file":
            self._out.append(data[start:end])
            return
        self.fields[self._name] += data[start:end]
        if len(self.fields[self._name]) > _FIELD_BYTES:
            raise Unprocessable(f"The field is longer than {_FIELD_BYTES} bytes.", param=self._name)
