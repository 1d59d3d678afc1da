"""Kinds of values that are redacted before a memory is stored, and the bodies of the dry run."""

from functools import lru_cache
from typing import Final, Literal, TypeAlias, get_args

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.memory import MAX_TEXT_CHARS, UserFields

Secret: TypeAlias = Literal["private_key", "token", "key", "password"]
Personal: TypeAlias = Literal["email", "phone", "card", "iban", "ip", "national_id"]
Kind: TypeAlias = Secret | Personal
Group: TypeAlias = Literal["secrets", "personal"]
KindNames: TypeAlias = tuple[Kind | Group, ...]
SECRETS: Final[frozenset[Kind]] = frozenset(get_args(Secret))
PERSONAL: Final[frozenset[Kind]] = frozenset(get_args(Personal))
ALL_KINDS: Final[frozenset[Kind]] = SECRETS | PERSONAL
_GROUPS: Final[dict[Kind | Group, frozenset[Kind]]] = {"secrets": SECRETS, "personal": PERSONAL}
_MEMBERS: Final[dict[Kind | Group, frozenset[Kind]]] = {**_GROUPS, **{kind: frozenset({kind}) for kind in ALL_KINDS}}


@lru_cache(maxsize=256)
def kinds_of(names: KindNames) -> frozenset[Kind]:
    """Return the kinds, with each group replaced by its members."""
    return frozenset(kind for name in names for kind in _MEMBERS[name])


class RedactionCheck(UserFields):
    """``POST /v1/memory/redaction/check``: texts to redact as a write of this user would; nothing is stored.

    ``kinds`` replaces those of the policies.
    """

    texts: tuple[str, ...] = Field(min_length=1, max_length=100)
    kinds: KindNames | None = Field(default=None, max_length=16)


class FoundValue(Wire):
    """A value that would be redacted: its kind and its place in the text, in characters. The value is not repeated."""

    kind: Kind
    start: int
    end: int


class RedactedText(Wire):
    """A text as it would be stored, and the values that it would lose."""

    text: str
    found: tuple[FoundValue, ...] = ()


class RedactionChecked(Wire):
    """The texts in their order, the number of values by kind, and the kinds that the user's policies redact."""

    texts: tuple[RedactedText, ...]
    counts: dict[str, int]
    kinds: tuple[Kind, ...]


MAX_CHECKED_CHARS: Final = 4 * MAX_TEXT_CHARS
"""The characters of all texts of one check."""
