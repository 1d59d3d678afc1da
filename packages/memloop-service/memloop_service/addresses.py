"""Refuses an address that would be read otherwise than it was meant: one that is not percent-encoded UTF-8.

Decoders put U+FFFD in the place of every byte that is no UTF-8, so ``%ff`` and ``%fe`` would name one user. A byte
beyond ASCII that is not percent-encoded would be read as Latin-1.
"""

from urllib.parse import unquote_to_bytes

from starlette.types import Scope

from memloop.wire.errors import Unprocessable
from memloop.wire.names import INVALID_NAME


def refuse_lost_characters(scope: Scope) -> None:
    """Raise Unprocessable (422 ``invalid_name``) with the name of the query's parameter, or ``path``."""
    if not _is_whole(scope.get("raw_path") or b""):
        raise _refusal("path")
    query: bytes = scope["query_string"]
    if not _is_whole(query):
        first = next(pair for pair in query.split(b"&") if not _is_whole(pair))
        raise _refusal(unquote_to_bytes(first.partition(b"=")[0]).decode("utf-8", "replace"))


def _is_whole(encoded: bytes) -> bool:
    if not encoded.isascii():
        return False
    if b"%" not in encoded:
        return True
    try:
        unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        return False
    return True


def _refusal(param: str) -> Unprocessable:
    message = f"{param}: the address must be percent-encoded UTF-8, without half a surrogate pair."
    return Unprocessable(message, param=param, code=INVALID_NAME)
