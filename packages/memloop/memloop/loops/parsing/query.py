"""The reply of a judge prompt: nothing, or one ``<query>…</query>``."""

import re

from memloop.loops.parsing.spoken import listen
from memloop.loops.steps import Verdict
from memloop.ports import Completion

_OPEN = re.compile(r"<query>", re.IGNORECASE)
_CLOSE = re.compile(r"</query>", re.IGNORECASE)


def parse_query(completion: Completion) -> tuple[Verdict, str | None]:
    """(``ask``, the first query), (``sufficient``, None) or (``unusable``, None).

    Silence means that the memory suffices, but only when the model itself ended its reply: one that was cut or
    filtered, or that never came out of its thinking, says nothing about the memory. Neither does talk without
    a query, or an empty query. Line breaks in a query become blanks.
    """
    spoken = listen(completion)
    query = _first_query(spoken.text)
    if query:
        return "ask", query
    silent = not spoken.text and not completion.tool_calls
    return ("sufficient", None) if silent and spoken.finished else ("unusable", None)


def _first_query(text: str) -> str:
    """Return the text of the first query, its line breaks as blanks; empty without one that is closed."""
    start = _OPEN.search(text)
    end = _CLOSE.search(text, start.end()) if start else None
    return " ".join(text[start.end() : end.start()].split()) if start and end else ""
