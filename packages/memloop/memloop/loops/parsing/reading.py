"""Parses what is said to a reader's prompts.

A gate's reply is a memory, or word that nothing changes, and whether the memory suffices. That of a read or an
integrate prompt is the new memory, as it is. A judge's is nothing, or one ``<query>…</query>``; or JSON,
``{"query": "…"}``.
"""

import re
from dataclasses import dataclass

from memloop.loops.parsing.json_values import json_values
from memloop.loops.rendering import as_written, listen
from memloop.loops.steps import Verdict
from memloop.ports import Completion
from memloop.profiles import Parser
from memloop.scoring.strict import answer_in_words, last_boxed

_END = re.compile(r"""[.!?](?:["')\]]|</\w+>)*(?=\s|$)|[。！？]|\n""")


def parse_memory(completion: Completion, *, whole: bool = False) -> str:
    """Return the new memory; empty for an empty reply, or when a filter removed part of it.

    A reply that hit its token limit is cut back to its last complete line or sentence, if it has one: half a fact is
    worse than none. ``whole`` takes it verbatim, white space included, as published.
    """
    if completion.finish_reason == "content_filter":
        return ""
    text = listen(completion).text
    if whole and text:
        return as_written(completion)
    ends = [end.end() for end in _END.finditer(text)] if completion.finish_reason == "length" else []
    return text[: ends[-1]].strip() if ends else text


_KEEP = re.compile(r"</?keep\s*/?>", re.IGNORECASE)
_ENOUGH = re.compile(r"</?enough\s*/?>", re.IGNORECASE)
_SAYS = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Gate:
    """``memory`` is what stands beside the marks, if it says anything; ``keep``: the model wants the old one."""

    memory: str
    keep: bool
    enough: bool


def parse_gate(completion: Completion) -> Gate:
    """Parse a gated reply. ``<enough/>`` alone keeps the memory too; a cut reply gives no verdict on sufficiency."""
    text = parse_memory(completion)
    enough = completion.finish_reason != "length" and bool(_ENOUGH.search(text))
    beside = _KEEP.sub("", _ENOUGH.sub("", text)).strip()
    memory = beside if _SAYS.search(beside) else ""
    return Gate(memory, keep=bool(_KEEP.search(text)) or (enough and not memory), enough=enough)


_QUERY = re.compile(r"<query>", re.IGNORECASE)
_QUERY_END = re.compile(r"</query>", re.IGNORECASE)
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
    start = _QUERY.search(spoken.text)
    end = _QUERY_END.search(spoken.text, start.end()) if start else None
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


@dataclass(frozen=True, slots=True)
class Answer:
    """``boxed`` is False when the reply has neither a closed box nor "the answer is": its whole text is the answer."""

    text: str
    boxed: bool


def parse_answer(completion: Completion, form: Parser = "boxed") -> Answer:
    r"""What stands in the last ``\boxed{}`` (else ``\fbox{}``), else the whole text; empty when nothing was said.

    The form ``words`` takes what follows the last "the answer is".
    """
    spoken = listen(completion)
    inside = answer_in_words(spoken.text) if form == "words" else last_boxed(spoken.text)
    return Answer(spoken.text, boxed=False) if inside is None else Answer(inside.strip(), boxed=True)
