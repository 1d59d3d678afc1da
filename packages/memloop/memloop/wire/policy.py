"""Memory policies: what may be kept of a tenant's, an agent's or a user's conversations, and what is redacted."""

from datetime import datetime
from functools import lru_cache
from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from memloop.wire.base import Wire
from memloop.wire.fields import UNPRINTABLE
from memloop.wire.memory import MAX_TEXT_CHARS, MemoryType, UserFields

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


MOST_CATEGORIES: Final = 32
MOST_PHRASES: Final = 100
MAX_INSTRUCTIONS_CHARS: Final = 2000


def _line(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError(UNPRINTABLE, "It must be one line of printable characters.")
    return text


CategoryName: TypeAlias = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64), AfterValidator(_line)
]
Phrase: TypeAlias = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=2, max_length=200), AfterValidator(_line)
]


class RedactionPolicy(Wire):
    """Which values are redacted before they are stored; a field that is None is inherited."""

    enabled: bool | None = None
    kinds: KindNames | None = Field(default=None, max_length=16)


class Category(Wire):
    """A category of memories. The memory writer chooses by the descriptions; the name is the memory's first tag."""

    name: CategoryName
    description: str = Field(default="", max_length=300)


class Retention(Wire):
    """How many days a memory of a type, of a category, or of any kind, is kept after it was made."""

    days: float = Field(gt=0, le=36_500)
    memory_type: MemoryType | None = None
    category: CategoryName | None = None


class KeepPolicy(Wire):
    """``PUT /v1/memory/policy``: what an application sets for one of its users; an empty field adds nothing.

    ``instructions`` go to the memory writer as the operator's words. A sentence that holds a phrase of ``never`` is not
    kept, whoever writes it.
    """

    instructions: str = Field(default="", max_length=MAX_INSTRUCTIONS_CHARS)
    categories: tuple[Category, ...] = Field(default=(), max_length=MOST_CATEGORIES)
    never: tuple[Phrase, ...] = Field(default=(), max_length=MOST_PHRASES)
    retention: tuple[Retention, ...] = Field(default=(), max_length=64)


class MemoryPolicy(KeepPolicy):
    """``PUT /v1/admin/memory-policy``: the settings of one level.

    Redaction and retention of a user win over an agent's, those over the tenant's; the other fields add up.
    """

    redaction: RedactionPolicy = RedactionPolicy()


class EffectivePolicy(Wire):
    """The settings in force somewhere: those of all levels that apply, merged."""

    redaction: RedactionPolicy
    instructions: str = ""
    categories: tuple[Category, ...] = ()
    never: tuple[str, ...] = ()
    retention: tuple[Retention, ...] = ()


class PolicyState(Wire):
    """The policy of one level, None without one, and the settings in force there."""

    tenant: str
    agent_id: str | None = None
    user_id: str | None = None
    policy: MemoryPolicy | None = None
    effective: EffectivePolicy


class UserPolicyState(Wire):
    """What the application has set for a user, None if nothing, and the settings in force for it."""

    user_id: str
    policy: KeepPolicy | None = None
    effective: EffectivePolicy


class PolicyCheck(UserFields):
    """``POST /v1/memory/policy/check``: texts to keep as a write of this user would; nothing is stored.

    ``memory_type`` and ``tags`` decide on category and retention.
    """

    texts: tuple[str, ...] = Field(min_length=1, max_length=100)
    memory_type: MemoryType = "LongTermMemory"
    tags: tuple[str, ...] = Field(default=(), max_length=64)


class Span(Wire):
    """A place in a text, in characters."""

    start: int
    end: int


class CheckedText(Wire):
    """A text as it would be kept. ``refused`` are the sentences that are left out; ``found`` are places in the text
    without them.
    """

    kept: str
    outcome: Literal["kept", "redacted", "refused"]
    """``kept`` as it is, ``redacted`` in part, or ``refused`` as a whole."""
    refused: tuple[Span, ...] = ()
    found: tuple[FoundValue, ...] = ()


class PolicyChecked(Wire):
    """The texts in their order, with the category and the end that a memory made now would have."""

    texts: tuple[CheckedText, ...]
    category: str | None = None
    expires_at: datetime | None = None
    effective: EffectivePolicy
