"""The fields that clients fill: names, moments, metadata. Their types and limits, and the ids made of them.

A name that something on its way would alter is refused. Two names that become one are two people's memories in one
place. Half an emoji is not Unicode: JSON parsers, URL decoders and UTF-8 put U+FFFD in its place, so a name that has
U+FFFD has lost a character already. Headers and forms take away outer space; file systems and clients turn canonically
equivalent characters into each other (NFC). Source: Unicode Standard Annex #15, Unicode Normalization Forms.

Every part can compute with a moment that is accepted, and metadata is of a bounded size. A speaker's name is one clean
line, put before the text once: a memory of a named message reads ``Caroline: I adopted a dog.``, and so does the memory
writer's prompt.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import Annotated, Final, TypeAlias
from unicodedata import is_normalized

from pydantic import AfterValidator, Field, JsonValue
from pydantic_core import PydanticCustomError

from memloop.wire.errors import Unprocessable

INVALID_NAME: Final = "invalid_name"
"""The code of the error, 422."""
MAX_NAME_CHARS: Final = 256
_LOST: Final = re.compile("[\ud800-\udfff\ufffd]")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def whole_name(name: str) -> str:
    """Return the name. Raises ValueError (``invalid_name``) for one that has lost a character on its way."""
    if _LOST.search(name):
        raise _invalid("A name must be valid Unicode: half a surrogate pair and U+FFFD stand for a lost character.")
    return name


def check_name(name: str) -> str:
    """Return the name. Raises ValueError (``invalid_name``) for one that something on its way would alter."""
    if name.isascii() and name.isprintable() and name.strip() == name:
        return name
    whole_name(name)
    if _CONTROL.search(name):
        raise _invalid("A name must not have control characters.")
    if name.strip() != name:
        raise _invalid("A name must not begin or end with space.")
    if not is_normalized("NFC", name):
        raise _invalid("A name must be in Unicode's normalisation form C (NFC).")
    return name


def named(name: str, *, param: str) -> str:
    """Return the name. Raises Unprocessable (422) for one that is too long or that something on its way would alter."""
    if len(name) > MAX_NAME_CHARS:
        raise Unprocessable(f"{param} is a name and may have at most {MAX_NAME_CHARS} characters.", param=param)
    try:
        return check_name(name)
    except PydanticCustomError as error:
        raise Unprocessable(f"{param}: {error.message()}", param=param, code=INVALID_NAME) from None


def check_keys(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the fields. Raises ValueError for a key that has lost a character: two such keys would become one."""
    pending: list[JsonValue] = [fields]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            for key, inner in value.items():
                whole_name(key)
                pending.append(inner)
        elif isinstance(value, list):
            pending += value
    return fields


def _invalid(message: str) -> PydanticCustomError:
    return PydanticCustomError(INVALID_NAME, "{reason}", {"reason": message})


Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS), AfterValidator(check_name)]
"""The name of a user, an agent or a run, as a client gives it."""


MAX_SPEAKER_CHARS: Final = 64
"""OpenAI's limit of ``messages[].name``."""
_NOT_SHOWN: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
"""Space, control characters, marks that turn the direction of writing, and lone surrogates."""


def clean_name(name: str | None) -> str | None:
    """Return the name as one line of at most 64 characters; None when it has no characters to show."""
    return _NOT_SHOWN.sub(" ", name or "").strip()[:MAX_SPEAKER_CHARS].rstrip() or None


Speaker: TypeAlias = Annotated[Annotated[str, Field(max_length=MAX_SPEAKER_CHARS)] | None, AfterValidator(clean_name)]


def said(name: str | None, text: str) -> str:
    """Return the text behind the name of its speaker, unless it begins with it or has no words."""
    before = _before(name)
    return f"{before}{text}" if before and text.strip() and not text.startswith(before) else text


def pieces(text: str, *, name: str | None, most_chars: int) -> Iterator[str]:
    """Cut the text so that each piece has at most so many characters with the name before it."""
    size = most_chars - len(_before(name))
    return (text[start : start + size] for start in range(0, len(text), size))


def _before(name: str | None) -> str:
    return f"{name}: " if name else ""


_SEPARATOR: Final = "\x1f"
_ESCAPE: Final = "\x00"


def joined(*parts: str | None) -> str:
    """Join the parts with U+001F; different parts give different texts.

    U+0000 and U+001F inside a part are escaped, each by U+0000 and a digit. A part that is None is U+0000 alone.
    """
    return _SEPARATOR.join(
        _ESCAPE if part is None else part.replace(_ESCAPE, f"{_ESCAPE}0").replace(_SEPARATOR, f"{_ESCAPE}1")
        for part in parts
    )


KEY_CHARS: Final = 512
_DIGEST_CHARS: Final = 12


def key_of_text(text: str) -> str:
    """Return the text if it is short, else its beginning and a digest: long texts may begin alike."""
    text = text.strip()
    if len(text) <= KEY_CHARS:
        return text
    digest = hashlib.sha256(" ".join(text.casefold().split()).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: KEY_CHARS - _DIGEST_CHARS - 1]} {digest[:_DIGEST_CHARS]}"


_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""Characters that take no place on a screen: joiners, marks of direction, variation selectors, tags."""
_HYPHENS: Final = "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
_CHANGED: Final = (range(0x80, 0x3400), range(0xA600, 0xAC00), range(0xF900, 0x20000), range(0xE0000, 0xE1000))
"""The rest of Unicode is ideographs and Hangul, which are their own spelling."""


@cache
def _spellings() -> dict[str, str]:
    """Return the spelling, of one character or none, of each character that has another one."""
    spellings: dict[str, str] = {}
    for char in map(chr, chain(*_CHANGED)):
        if _UNSEEN.match(char):
            spelling = ""
        elif char.isdecimal():
            spelling = str(unicodedata.decimal(char))
        else:
            spelling = "-" if char in _HYPHENS else unicodedata.normalize("NFKC", char)
        if spelling != char and len(spelling) < 2:
            spellings[char] = spelling
    return spellings


def folded(text: str) -> tuple[str, list[int] | None]:
    """Return the text folded, and the place in ``text`` of each of its characters; None where all are the same."""
    if text.isascii():
        return text, None
    spellings = _spellings()
    if spellings.keys().isdisjoint(text):
        return text, None
    shown = [spellings.get(char, char) for char in text]
    if all(shown):
        return "".join(shown), None
    return "".join(shown), [place for place, char in enumerate(shown) if char]


EARLIEST: Final = datetime(1000, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
MAX_METADATA_BYTES: Final = 65_536
MAX_METADATA_VALUES: Final = 1000
MAX_METADATA_PATH_CHARS: Final = 256
MAX_METADATA_DEPTH: Final = 8
TIME_OUT_OF_RANGE: Final = "time_out_of_range"
METADATA_TOO_LARGE: Final = "metadata_too_large"
UNPRINTABLE: Final = "unprintable_text"
CHUNK_OVERLAP_TOO_LARGE: Final = "chunk_overlap_too_large"
FILTER_TOO_LARGE: Final = "filter_too_large"
LIMIT_CODES: Final = frozenset(
    {TIME_OUT_OF_RANGE, METADATA_TOO_LARGE, UNPRINTABLE, CHUNK_OVERLAP_TOO_LARGE, FILTER_TOO_LARGE, INVALID_NAME}
)
"""Codes of values that a JSON schema cannot bound."""
STORE_BODY_BYTES: Final = 32 * 1024 * 1024
"""The largest body that every memory store takes."""
MAX_WRITE_BYTES: Final = STORE_BODY_BYTES - 2 * 1024 * 1024
"""The most that a queued write may take as JSON. A body to the store has its texts and metadata once, and beside them
at most 100 names of memories and one text a second time."""
_Container: TypeAlias = tuple[str, dict[str, JsonValue] | list[JsonValue], int]
"""A path, what lies there, and its depth."""


def aware(moment: datetime) -> datetime:
    """Return the moment with its zone; without one it counts as UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def check_moment(moment: datetime) -> datetime:
    """Returns the moment. Raises ``ValueError`` outside the years 1000 to 8999; without a zone it counts as UTC."""
    if not EARLIEST <= aware(moment) < LATEST:
        raise PydanticCustomError(TIME_OUT_OF_RANGE, "The time must be in the years 1000 to 8999.")
    return moment


def check_metadata(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Returns the metadata. Raises ``ValueError`` when it is too large, too deep, or has too many or too long keys."""
    values = size = 0
    pending: list[_Container] = [("", metadata, 1)]
    while pending:
        path, container, depth = pending.pop()
        values += len(container)
        _check(depth, MAX_METADATA_DEPTH, "levels")
        _check(values, MAX_METADATA_VALUES, "values")
        for inner_path, value in _entries(path, container):
            _check(len(inner_path), MAX_METADATA_PATH_CHARS, "characters in a key and the keys above it")
            size += _bytes(inner_path) + _bytes(value)
            if isinstance(value, dict | list):
                pending.append((inner_path, value, depth + 1))
        _check(size, MAX_METADATA_BYTES, "bytes, with the keys above each value")
    return metadata


def _check(found: int, most: int, unit: str) -> None:
    if found > most:
        raise PydanticCustomError(
            METADATA_TOO_LARGE, "Metadata has at most {most} {unit}.", {"most": most, "unit": unit}
        )


def _entries(path: str, container: dict[str, JsonValue] | list[JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Yields each value with its dotted path; elements of a list share the list's path."""
    if isinstance(container, list):
        return ((path, value) for value in container)
    return ((f"{path}.{name}" if path else name, value) for name, value in container.items())


def _bytes(value: JsonValue) -> int:
    return len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else 8


Moment: TypeAlias = Annotated[datetime, AfterValidator(check_moment)]
"""A time that a client gives: RFC 3339, of the years 1000 to 8999."""
Metadata: TypeAlias = Annotated[dict[str, JsonValue], AfterValidator(check_metadata)]
"""A client's own fields, bounded in bytes, values, depth and length of keys."""

WebUrl: TypeAlias = Annotated[str, Field(max_length=2048, pattern=r"^https?://[^\s\x00-\x20\x7f-\xa0]+$")]
"""An address that we call."""

_FETCHED: Final = re.compile(r"https?://|data:", re.IGNORECASE)
NO_MEDIA_URL: Final = "A URL in a message must begin with https://, http:// or data:."


def is_media_url(url: str) -> bool:
    """Whether an engine may fetch the URL, or finds the bytes in it: no file of the engine's own machine."""
    return _FETCHED.match(url) is not None


def _check_media_url(url: str) -> str:
    if not is_media_url(url):
        raise PydanticCustomError("invalid_url", NO_MEDIA_URL)
    return url


MediaUrl: TypeAlias = Annotated[
    str, AfterValidator(_check_media_url), Field(json_schema_extra={"pattern": "^(https?://|data:)"})
]
"""The address of a picture or a file in a message."""
