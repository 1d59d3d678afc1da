r"""Makes JSON bodies well-formed at the edge: a lone surrogate escape such as ``\ud800`` becomes ``\ufffd``.

JSON may hold half of a surrogate pair, UTF-8 may not. Such a text would fail wherever it is first written: in a
response, a store, a log. Source: RFC 8259, section 8.2.
"""

import re
from typing import Final

_HIGH: Final = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!%b)|(?<!%b\\u[dD])[c-fC-F][0-9a-fA-F]{2})" % (_LOW, _HIGH)
)
_HIDDEN: Final = b"\0\0"


def without_lone_surrogates(body: bytes) -> bytes:
    """Replace each lone surrogate in the JSON text; all other bytes stay.

    Escaped backslashes are masked first, so that every remaining backslash begins an escape. A body with a NUL byte is
    returned unchanged: no JSON text has one.
    """
    if b"\\" not in body or (b"\\ud" not in body and b"\\uD" not in body) or b"\0" in body:
        return body
    return _LONE.sub(rb"\\ufffd", body.replace(rb"\\", _HIDDEN)).replace(_HIDDEN, rb"\\")
