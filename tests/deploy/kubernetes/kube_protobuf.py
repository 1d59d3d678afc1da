"""Reads a Secret in Kubernetes' protobuf, in which Helm sends its releases (k8s.io/api/core/v1/generated.proto)."""

import base64
from collections.abc import Iterator
from typing import Any, Final

_MAGIC: Final = b"k8s\x00"
_NAME, _NAMESPACE, _LABELS = 1, 3, 11
_METADATA, _DATA, _TYPE = 1, 2, 3


def is_protobuf(data: bytes) -> bool:
    """Whether a body is Kubernetes' protobuf."""
    return data.startswith(_MAGIC)


def secret_of(data: bytes) -> dict[str, Any]:
    """The Secret as JSON has it."""
    raw = dict(_fields(data[len(_MAGIC) :]))[2]
    fields = list(_fields(raw))
    metadata = list(_fields(dict(fields)[_METADATA]))
    labels = dict(_entry(value) for number, value in metadata if number == _LABELS)
    held = dict(_entry(value) for number, value in fields if number == _DATA)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": dict(metadata)[_NAME].decode(),
            "namespace": dict(metadata).get(_NAMESPACE, b"").decode(),
            "labels": {name: value.decode() for name, value in labels.items()},
        },
        "type": dict(fields)[_TYPE].decode(),
        "data": {name: base64.b64encode(value).decode() for name, value in held.items()},
    }


def _entry(data: bytes) -> tuple[str, bytes]:
    both = dict(_fields(data))
    return both[1].decode(), both.get(2, b"")


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each field of a message; those of numbers are left out."""
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        size, at = _number(data, at)
        if tag & 7 == 2:
            yield tag >> 3, data[at : at + size]
            at += size


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
