"""Leaves out of wheels and compiled libraries all that one card does not need, so that they travel in small parts."""

import struct
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

LEFT_OUT: Final = (
    "vllm/vllm-rs",
    "vllm/vllm_flash_attn/*.so",  # attention is Triton's
    "vllm/_moe_C*.so",
    "vllm/_qutlass_C*.so",
    "vllm/_flashmla*.so",
    "vllm/third_party/*/include/*",
    "vllm/third_party/*/cutlass/*",
    "vllm/third_party/deep_gemm/_C*.so",
    "vllm/entrypoints/serve/instrumentator/static/*",
    "ray/jars/*",
    "ray/cpp/*",
    "ray/rllib/*",
    "ray/dashboard/client/*",
    "transformers/models/*/convert_*",
    "*.a",
)
_MAGIC: Final = b"\x50\xed\x55\xba"
_SECTION: Final = b".nv_fatbin"


def files_of(wheel: Path, *, architecture: int) -> Iterator[tuple[str, int, bytes]]:
    """Yield the name, mode and content of each file that the card of an ``architecture`` (90: Hopper) needs."""
    with zipfile.ZipFile(wheel) as opened:
        for entry in opened.infolist():
            if entry.is_dir() or any(fnmatch(entry.filename, pattern) for pattern in LEFT_OUT):
                continue
            content = opened.read(entry)
            if entry.filename.endswith(".so"):
                content = only_for(content, architecture=architecture)
            yield entry.filename, (entry.external_attr >> 16) & 0o777 or 0o644, content


def only_for(library: bytes, *, architecture: int) -> bytes:
    """Blank the kernels of other architectures in a shared library's fat binaries; all offsets stay.

    A driver loads the entry of its card and reads no other. Layout: CUDA's ``fatbinary_section.h`` for the containers;
    an entry has its kind, the sizes of header and content, and at byte 28 its architecture.
    """
    held = bytearray(library)
    for start, size in _sections(library, _SECTION):
        place, end = start, start + size
        while (place := library.find(_MAGIC, place, end)) >= 0:
            header, body = struct.unpack_from("<HQ", library, place + 6)
            entry, last = place + header, place + header + body
            while entry < last:
                own, length = struct.unpack_from("<IQ", library, entry + 4)
                (made_for,) = struct.unpack_from("<I", library, entry + 28)
                if made_for != architecture:
                    held[entry + own : entry + own + length] = bytes(length)
                entry += own + length
            place = last
    return bytes(held)


def _sections(library: bytes, name: bytes) -> Iterator[tuple[int, int]]:
    """Yield the place and size of each section of a 64-bit ELF file with the name; none of another file."""
    if library[:5] != b"\x7fELF\x02":
        return
    (table,) = struct.unpack_from("<Q", library, 0x28)
    size, count, names = struct.unpack_from("<HHH", library, 0x3A)
    (texts,) = struct.unpack_from("<Q", library, table + names * size + 0x18)
    for number in range(count):
        called, _, _, _, place, length = struct.unpack_from("<IIQQQQ", library, table + number * size)
        if library[texts + called : library.index(b"\0", texts + called)] == name:
            yield place, length
