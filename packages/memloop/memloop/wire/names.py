"""The type of names: of users, agents, runs, keys and files. A name that something on its way would alter is refused.

Two names that become one are two people's memories in one place. Half an emoji is not Unicode: JSON parsers, URL
decoders and UTF-8 put U+FFFD in its place, so a name that has U+FFFD has lost a character already. Headers and forms
take away outer space; file systems and clients turn canonically equivalent characters into each other (NFC). Source:
Unicode Standard Annex #15, Unicode Normalization Forms.
"""

import re
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
