"""Defines what is derived from a memory as it is stored: ids, place in its conversation, speaker, and its flags.

Two memories are the same when their normalised keys and values are; their ids are made from them. By the place and the
speaker, a search finds neighbouring turns. Names of speakers in a question select turns, and disturb the rankings of
words and meanings.
"""

import hashlib
import math
import re
import unicodedata
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from memloop.wire.errors import Unprocessable
from memloop.wire.fields import joined, key_of_text
from memloop.wire.memory import MemoryDraft, MemoryType, NamedTime, Namespace, Source, repeated_turn
from memory_store.vectors.filters import flag

_ROOT = uuid.UUID("6d656d6c-6f6f-5070-8000-73746f726500")
_POSSESSIVE = re.compile(r"['\u2019]s\b")
_NOT_WORD = re.compile(r"[\W_]+")
_MINUS = re.compile(r"(?<!\w)-(?=\d)")
_SIGNS_OF_WORDS = frozenset({"Mn", "Mc", "Sm", "Sc", "So"})
"""Categories of Unicode outside ``\\w`` that make another word: vowel signs, ``+``, currencies, pictures."""
_LEADING_ARTICLE = re.compile(r"^(?:the|a|an) (?=.)")
_SPACES = re.compile(r"\s+")
_MIXED = re.compile(r"[^\W\d_]+")
_RAISED = {ord(digit): f"^{number}" for number, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def normalised_key(key: str) -> str:
    """Return the key without case, punctuation, possessive s, leading article and extra space.

    ``"The user's favourite-colour"`` and ``"User favourite colour"`` are one key; ``C++`` and ``C#``, ``-5`` and ``5``
    are two. A key of punctuation only is unchanged.
    """
    words = _NOT_WORD.sub(_kept_signs, _MINUS.sub("\u2212", _POSSESSIVE.sub("", _folded(key))))
    return _LEADING_ARTICLE.sub("", _SPACES.sub(" ", words).strip()) or _folded(key).strip()


def _kept_signs(found: re.Match[str]) -> str:
    """Return a run between words with a space for each character that is punctuation."""
    return "".join(sign if sign == "#" or unicodedata.category(sign) in _SIGNS_OF_WORDS else " " for sign in found[0])


def normalised_value(value: str) -> str:
    """Return the value without case, extra space and closing punctuation.

    Inner punctuation stays (3.5 is not 35), and so do raised digits and the case of a word of mixed case: 10² is not
    102, and a code of aBcD not one of ABcd.
    """
    raised = value.translate(_RAISED)
    folded = _MIXED.sub(lambda word: word[0].casefold() if _is_plain(word[0]) else word[0], raised)
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", folded)).strip().rstrip(".!;, ")


def _is_plain(word: str) -> bool:
    """Return whether a word is written small, in capitals, or with a capital first."""
    return word.islower() or word.isupper() or (word[:1].isupper() and word[1:].islower())


def content_hash(value: str, times: Sequence[NamedTime] = ()) -> str:
    """SHA-256 (hex) of the normalised value and the days that it names: equal hashes are one statement of a fact.

    Of ``times`` those count that the value itself names: "tomorrow" is another day when it is said again.
    """
    words = " ".join(value.split())
    days = [f"{time.start}/{time.end}" for time in times if time.text in words]
    normal = normalised_value(value)
    return hashlib.sha256((joined(normal, *days) if days else normal).encode()).hexdigest()


def _uuid(*parts: str | None) -> str:
    return str(uuid.uuid5(_ROOT, joined(*parts)))


def _namespace_parts(namespace: Namespace) -> tuple[str | None, ...]:
    return namespace.tenant, namespace.user_id, namespace.agent_id, namespace.run_id


def chain_id(namespace: Namespace, memory_type: MemoryType, key: str, value: str) -> str:
    """Return the id that all versions of one fact share: of namespace, type and normalised key.

    A text without a key of its own is its fact's name, and its inner punctuation counts.
    """
    name = _folded(normalised_value(value)) if key == key_of_text(value) else normalised_key(key)
    return _uuid("chain", *_namespace_parts(namespace), memory_type, name)


def version_id(chain: str, value_hash: str, version: int) -> str:
    """Return the id of one version of a fact; two writers that race to the same version make one item."""
    return _uuid("version", chain, value_hash, str(version))


def snapshot_id(item_id: str, version: int) -> str:
    """Return the id under which an edited or split item keeps its former state."""
    return _uuid("snapshot", item_id, str(version))


def is_item_id(text: str) -> bool:
    """Return whether an item can have this id: a UUID in our spelling."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def imported_id(namespace: Namespace, former_id: str) -> str:
    """Return the id of an imported version; no import can choose the id of another tenant's item."""
    return _uuid("imported", *_namespace_parts(namespace), former_id)


def raw_turn_id(namespace: Namespace, draft: MemoryDraft, said_at: datetime | None, write: str) -> str:
    """Return the id of a raw turn: equal turns at different times, or of different writes, differ."""
    time = said_at.isoformat() if said_at else ""
    return _uuid("raw", *_namespace_parts(namespace), normalised_key(draft.key), content_hash(draft.value), time, write)


def draft_digest(draft: MemoryDraft) -> str:
    """Return 16 hex digits of a draft's content, which name it inside its write event."""
    parts = (draft.memory_type, normalised_key(draft.key), normalised_value(draft.value))
    return hashlib.sha256(joined(*parts).encode()).hexdigest()[:16]


_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)
_ARRIVAL_BITS = 30
_MAX_SECONDS = 2**32 - 1
"""136 years on either side of the epoch; a time beyond stands at that end."""
_ROLES = frozenset({"user", "assistant", "system", "tool"})
_NAMED = re.compile(r"(?P<name>[^\W\d_][\w.'\u2019-]*(?: [^\W\d_][\w.'\u2019-]*){0,2}): \S")
NAME_WORD = re.compile(r"[^\W\d_]{2,}")

PLACES_PER_SECOND = 2**_ARRIVAL_BITS


def place_of(said_at: datetime, arrived_at: datetime) -> int:
    """Returns a number that orders memories: by the second of event time, then by arrival in microseconds.

    Arrival is kept modulo 18 minutes, so that both fit 63 bits: only a second whose memories take longer than that to
    arrive may come out rotated.
    """
    seconds = min(max((said_at - _EPOCH) // _SECOND, -_MAX_SECONDS), _MAX_SECONDS)
    return seconds * PLACES_PER_SECOND + (arrived_at - _EPOCH) // _MICROSECOND % PLACES_PER_SECOND


def speaker_of(
    memory: str, memory_type: MemoryType, tags: Sequence[str], sources: Sequence[Source] = ()
) -> tuple[str, ...]:
    """Returns the words of the speaker's name, folded; empty without a name.

    The turn that a memory repeats has the name. A raw turn may carry it as its first tag instead, and any text may
    begin with it ("Anna: I moved"). Roles are not names.
    """
    turn = repeated_turn(memory, sources)
    if turn and turn.name:
        return name_words(turn.name)
    name = tags[0] if memory_type == "RawTurn" and tags else ""
    if name.casefold() in _ROLES or not name:
        match = _NAMED.match(memory)
        name = match["name"] if match and match["name"][0].isupper() else ""
    return () if name.casefold() in _ROLES else name_words(name)


def name_words(text: str) -> tuple[str, ...]:
    """Returns the words of a text that can be part of a name, folded, each once."""
    return tuple(dict.fromkeys(match.group() for match in NAME_WORD.finditer(text.casefold())))


_MOST_NAMES = 64


def possible_names(question: str) -> tuple[str, ...]:
    """Return the words, folded, that may name a speaker: those in capitals, or all where the case is not kept."""
    words = [match.group() for match in NAME_WORD.finditer(question)]
    capital = [word for word in words if not word.islower()]
    return name_words(" ".join(capital if len(capital) > 1 or (capital and capital[0] != words[0]) else words))[
        :_MOST_NAMES
    ]


def without_names(question: str, names: Collection[str]) -> str:
    """Return the question without the words (folded), their possessive s and extra space.

    A question of nothing else stays as it was.
    """
    if not names:
        return question
    kept: list[str] = []
    at = 0
    for match in NAME_WORD.finditer(question):
        if match.group().casefold() in names:
            possessive = _POSSESSIVE.match(question, match.end())
            kept.append(question[at : match.start()])
            at = possessive.end() if possessive else match.end()
    rest = _SPACES.sub(" ", "".join((*kept, question[at:]))).strip()
    return rest if NAME_WORD.search(rest) else question


_INT64 = range(-(2**63), 2**63)


def flags_of(metadata: Mapping[str, JsonValue]) -> list[str]:
    """The flags of all booleans, those in nested objects and in lists included."""
    return sorted({flag(path, value) for path, value in _leaves(metadata) if isinstance(value, bool)})


def check_metadata(metadata: Mapping[str, JsonValue]) -> None:
    """Raises ``Unprocessable`` for what no vector store gives back as it was.

    That is NaN, infinities, and integers beyond 64 bits.
    """
    for path, value in _leaves(metadata):
        fits = math.isfinite(value) if isinstance(value, float) else not isinstance(value, int) or value in _INT64
        if not fits:
            raise Unprocessable(f"metadata.{path[:80]} cannot be stored", param="metadata", code="invalid_metadata")


def _leaves(metadata: Mapping[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Every value that is no container, by its dotted path; list elements share their list's path."""
    pending: list[tuple[str, JsonValue]] = list(metadata.items())
    while pending:
        path, value = pending.pop()
        match value:
            case dict():
                pending.extend((f"{path}.{name}", inner) for name, inner in value.items())
            case list():
                pending.extend((path, inner) for inner in value)
            case _:
                yield path, value
