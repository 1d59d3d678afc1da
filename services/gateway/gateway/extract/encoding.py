"""Decodes texts as browsers do: a byte order mark, then what is declared, then what the bytes look like.

Labels are those of the encoding standard, in which ``gb2312`` is gbk and ``iso-8859-1`` windows-1252. A byte that is
wrong in the encoding becomes U+FFFD by itself, and is counted.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

import webencodings

from gateway.extract.source import Source, Unreadable

BOMS: Final = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_SAMPLE_BYTES: Final = 1 << 16
_WIDER: Final = {"gbk": "gb18030", "euc-jp": "euc_jis_2004"}
_HIGH = re.compile(rb"[\x80-\xff]+")
_CONTROLS = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")
_BINARY: Final = 0.1
_LEAST_WIDE: Final = 8
_ERRORS: Final = "count-and-replace"


_CHARSET = re.compile(
    rb"<meta[^>]{0,200}charset=[\"']?([A-Za-z0-9_:.-]{1,40})|<\?xml[^>]{0,100}encoding=[\"']([A-Za-z0-9_:.-]{1,40})",
    re.IGNORECASE,
)


class _Replaced:
    """An error handler of codecs: each wrong byte becomes U+FFFD."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        self.count += 1
        return "\ufffd", error.end


def decoded(source: Source, blocks: Iterable[bytes], *, declared: str = "") -> Iterator[str]:
    """Yield a text in blocks. ``declared`` is the label of the protocol or of the text itself.

    Raises Unreadable when the bytes are no text.
    """
    blocks = iter(blocks)
    head = next(blocks, b"")
    encoding = encoding_of(head, declared)
    bom = next((mark for mark in BOMS if head.startswith(mark)), b"")
    replaced = _Replaced()
    codecs.register_error(_ERRORS, replaced)
    decoder = codecs.getincrementaldecoder(encoding)(_ERRORS)
    for block in chain([head[len(bom) :]], blocks):
        yield _checked(decoder.decode(block))
    yield _checked(decoder.decode(b"", final=True))
    source.note(replaced.count, f"byte that is not {encoding.upper()}", f"bytes that are not {encoding.upper()}")


def label_in(raw: bytes) -> str:
    """Return the encoding that a page or XML names; UTF-16 cannot be what it says in ASCII."""
    named = _CHARSET.search(raw, 0, 4096)
    label = "" if named is None else (named[1] or named[2]).decode()
    found = webencodings.lookup(label)
    return "utf-8" if found is not None and found.name.startswith("utf-16") else label


def encoding_of(head: bytes, declared: str = "") -> str:
    """Return the name of the codec for a text that begins with ``head``."""
    if (marked := next((name for bom, name in BOMS.items() if head.startswith(bom)), None)) is not None:
        return marked
    label = webencodings.lookup(declared) if declared else None
    if label is not None and label.name not in ("utf-8", "replacement", "x-user-defined"):
        return _WIDER.get(label.name) or webencodings.PYTHON_NAMES.get(label.name, label.name)
    if b"\0" in head[:_SAMPLE_BYTES]:
        return _wide(head[:_SAMPLE_BYTES])
    if _is_utf8(head):
        return "utf-8"
    from charset_normalizer import from_bytes

    first = _HIGH.search(head)
    start = max(0, first.start() - 200) if first else 0
    best = from_bytes(head[start : start + _SAMPLE_BYTES]).best()
    likely = "" if best is None else best.encoding.replace("_", "-").replace("cp125", "windows-125")
    known = webencodings.lookup(likely)
    return "windows-1252" if known is None else encoding_of(b"", known.name)


def _is_utf8(head: bytes) -> bool:
    """Return whether the bytes are UTF-8 with few wrong ones: more than nine characters in ten are right."""
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.end >= len(head) and error.reason == "unexpected end of data":
            return True
        runs = b"\n".join(_HIGH.findall(head[: 16 * _SAMPLE_BYTES])).decode(errors="replace").replace("\n", "")
        wrong = runs.count("\ufffd")
        return wrong * 10 < len(runs)
    return True


def _wide(sample: bytes) -> str:
    """Return the UTF-16 whose other bytes are the zeros. Raises Unreadable."""
    zeros = [sample[0::2].count(0), sample[1::2].count(0)]
    few, many = sorted(zeros)
    if len(sample) < _LEAST_WIDE or many * 4 < len(sample) // 2 or few * 10 > many:
        raise Unreadable("the file is binary: it contains NUL bytes")
    return "utf-16-be" if zeros[0] == many else "utf-16-le"


def _checked(part: str) -> str:
    if "\0" in part:
        raise Unreadable("the file is binary: it contains NUL bytes")
    if len(_CONTROLS.findall(part)) > _BINARY * len(part):
        raise Unreadable("the file is binary")
    return part
