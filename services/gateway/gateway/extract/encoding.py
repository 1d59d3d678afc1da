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
_ESCAPE: Final = b"\x1b$"
"""With which Japanese begins in ISO-2022-JP, whose bytes are all ASCII."""
_BEFORE_BYTES: Final = 200
"""Of the sample, before its first letter beyond ASCII."""
_LATIN: Final = ("windows-1252", "windows-1250", "windows-1254", "windows-1257")
_OLDER: Final = ("mac-roman", "cp850")
_IN_WORDS = re.compile("(?<=[A-Za-z])[^\0-\x7f\xa0\xad\u2010-\u2026\u2122](?=[a-z])")
"""Signs between letters that are no dashes, quotes or dots: these part words in any text."""
_CONTROLS = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")
_BINARY: Final = 0.1
_LEAST_WIDE: Final = 8
_ERRORS: Final = "count-and-replace"


_CHARSET = re.compile(
    rb"<meta[^>]{0,200}charset=[\"']?([A-Za-z0-9_:.-]{1,40})|<\?xml[^>]{0,100}encoding=[\"']([A-Za-z0-9_:.-]{1,40})",
    re.IGNORECASE,
)


def decoded(source: Source, blocks: Iterable[bytes], *, declared: str = "") -> Iterator[str]:
    """Yield a text in blocks. ``declared`` is the label of the protocol or of the text itself.

    Raises Unreadable when the bytes are no text.
    """
    blocks = iter(blocks)
    head = next(blocks, b"")
    encoding = encoding_of(head, declared)
    bom = next((mark for mark in BOMS if head.startswith(mark)), b"")
    replaced = 0

    def replace(error: UnicodeError) -> tuple[str, int]:
        nonlocal replaced
        if not isinstance(error, UnicodeDecodeError):
            raise error
        replaced += 1
        return "\ufffd", error.end

    codecs.register_error(_ERRORS, replace)
    decoder = codecs.getincrementaldecoder(encoding)(_ERRORS)
    for block in chain([head[len(bom) :]], blocks):
        yield _checked(decoder.decode(block))
    yield _checked(decoder.decode(b"", final=True))
    source.note(replaced, f"byte that is not {encoding.upper()}", f"bytes that are not {encoding.upper()}")


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
    if b"\0" in (sample := head[:_SAMPLE_BYTES]):  # UTF-16, whose every other byte is a zero, or nothing that is read
        zeros = [sample[0::2].count(0), sample[1::2].count(0)]
        few, many = sorted(zeros)
        if len(sample) < _LEAST_WIDE or many * 4 < len(sample) // 2 or few * 10 > many:
            raise Unreadable("the file is binary: it contains NUL bytes")
        return "utf-16-be" if zeros[0] == many else "utf-16-le"
    if _is_utf8(head, declared=label is not None) and _ESCAPE not in head:
        return "utf-8"
    first = _HIGH.search(head)
    return _guessed(head[max(0, first.start() - _BEFORE_BYTES) if first else 0 :][:_SAMPLE_BYTES])


def _guessed(sample: bytes) -> str:
    """Return the codec that Firefox guesses, or one of the Macintosh or DOS where only its letters make words."""
    from chardetng_py.detector import EncodingDetector

    detector = EncodingDetector()
    detector.feed(sample, last=True)
    guess = detector.guess(tld=None, allow_utf8=False)
    guess = guess if webencodings.lookup(guess) is None else encoding_of(b"", guess)  # cp874 is no label
    if guess not in _LATIN or _fitting(sample.decode(guess, "replace")) >= 0:
        return guess
    return max((guess, *_OLDER), key=lambda name: _fitting(sample.decode(name, "replace")))


def _fitting(text: str) -> int:
    """Return how many letters beyond ASCII fit into the words where they stand, less the signs there that do not."""
    return sum(1 if sign.islower() else -1 for sign in _IN_WORDS.findall(text))


def _is_utf8(head: bytes, *, declared: bool) -> bool:
    """Return whether the bytes are UTF-8 with few wrong ones: most of the characters beyond ASCII are right.

    Where UTF-8 is declared, a character counts by its bytes: a short page may have one letter and one wrong byte.
    """
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.end >= len(head) and error.reason == "unexpected end of data":
            return True
        runs = b"\n".join(_HIGH.findall(head[: 16 * _SAMPLE_BYTES])).decode(errors="replace").replace("\n", "")
        right = runs.replace("\ufffd", "")
        return len(runs) - len(right) < len(right.encode() if declared else right)
    return True


def _checked(part: str) -> str:
    if "\0" in part:
        raise Unreadable("the file is binary: it contains NUL bytes")
    if len(_CONTROLS.findall(part)) > _BINARY * len(part):
        raise Unreadable("the file is binary")
    return part
