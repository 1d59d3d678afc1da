r"""Finds ``\boxed{…}``: for the strict score, and for the parser of answers."""

import re

_BOX = re.compile(r"\\boxed(?![a-zA-Z])")
_FRAME = re.compile(r"\\fbox(?![a-zA-Z])")


def last_boxed(text: str) -> str | None:
    r"""What stands in the text's last ``\boxed``, or in its last ``\fbox`` when it has no ``\boxed``; None without one.

    Braces are matched, escaped ones skipped; a box that never closes is no box. ``\boxed 42`` without braces reaches
    to the next ``$`` or the end of its line. Source: the hendrycks_math scorer's conventions.
    """
    marks = list(_BOX.finditer(text)) or list(_FRAME.finditer(text))
    if not marks:
        return None
    rest = text[marks[-1].end() :]
    content = rest.lstrip()
    return _braced(content) if content.startswith("{") else _unbraced(rest)


def _braced(text: str) -> str | None:
    depth = 0
    for mark in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0 and mark[0] == "}":
            return text[1 : mark.start()]
    return None


def _unbraced(text: str) -> str | None:
    found = re.match(r"[ \t]+([^$\n]+)", text)
    return found[1].strip() if found else None
