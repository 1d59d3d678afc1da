r"""Makes JSON bodies well-formed at the edge: an escape such as ``\ud800`` that stands alone becomes ``\ufffd``.

JSON may hold half of a surrogate pair, UTF-8 may not. Let in, such a text fails wherever it is first written out:
in an answer, a store, a log. Source: RFC 8259, section 8.2.
"""

import re

_ESCAPE = re.compile(
    rb"\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def without_lone_surrogates(body: bytes) -> bytes:
    """The JSON text with each lone surrogate replaced; any other byte stays, valid JSON or not."""
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return _ESCAPE.sub(lambda escape: rb"\ufffd" if escape["lone"] else escape[0], body)
