"""The reply of a judge prompt: nothing, or one ``<query>…</query>``; or JSON, ``{"query": "…"}``."""

import re

from memloop.loops.parsing.json_values import json_values
from memloop.loops.parsing.spoken import listen
from memloop.loops.steps import Verdict
from memloop.ports import Completion

_OPEN = re.compile(r"<query>", re.IGNORECASE)
_CLOSE = re.compile(r"</query>", re.IGNORECASE)
_TOO_SHORT_CHARS = 5


def parse_query(completion: Completion, *, whole: bool = False) -> tuple[Verdict, str | None]:
    """(``ask``, the first query), (``sufficient``, None) or (``unusable``, None).

    Silence means that the memory suffices, but only when the model itself ended its reply: one that was cut or
    filtered, or that never came out of its thinking, says nothing about the memory. Neither does talk without
    a query, or an empty query. Braces around a query are dropped, and its line breaks become blanks. ``whole`` keeps
    the line breaks, takes a query of at most five characters for none, and reads no JSON, as published.
    """
    spoken = listen(completion)
    # The text of the first query without braces around it; empty without one that is closed
    start = _OPEN.search(spoken.text)
    end = _CLOSE.search(spoken.text, start.end()) if start else None
    query = spoken.text[start.end() : end.start()].lstrip("{").rstrip("}").strip() if start and end else ""
    if not query and not whole:
        objects = (found.value for found in json_values(spoken.text) if isinstance(found.value, dict))
        given = next((value["query"] for value in objects if "query" in value), None)
        if isinstance(given, str) and not given.strip() and spoken.finished:
            return "sufficient", None
        query = given if isinstance(given, str) else ""
    query = (query if len(query) > _TOO_SHORT_CHARS else "") if whole else " ".join(query.split())
    if query:
        return "ask", query
    silent = not spoken.text and not completion.tool_calls
    return ("sufficient", None) if silent and spoken.finished else ("unusable", None)
