"""The reply of a judge prompt: nothing, or one ``<query>…</query>``."""

import re

from memloop.loops.parsing.spoken import listen
from memloop.loops.steps import Verdict
from memloop.ports import Completion

_QUERY = re.compile(r"<query>(.*?)</query>", re.DOTALL | re.IGNORECASE)


def parse_query(completion: Completion) -> tuple[Verdict, str | None]:
    """(``ask``, the first query), (``sufficient``, None) or (``unusable``, None).

    Silence means that the memory suffices, but only when the model itself ended its reply: one that was cut or
    filtered, or that never came out of its thinking, says nothing about the memory. Neither does talk without
    a query, or an empty query. Line breaks in a query become blanks.
    """
    spoken = listen(completion)
    found = _QUERY.search(spoken.text)
    query = " ".join(found[1].split()) if found else ""
    if query:
        return "ask", query
    silent = not spoken.text and not completion.tool_calls
    return ("sufficient", None) if silent and spoken.finished else ("unusable", None)
