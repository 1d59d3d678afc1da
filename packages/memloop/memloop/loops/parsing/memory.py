"""The reply of a read or an integrate prompt is the new memory, as it is."""

import re

from memloop.loops.parsing.spoken import as_written, listen
from memloop.ports import Completion

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
    return _complete_part(text) if completion.finish_reason == "length" else text


def _complete_part(text: str) -> str:
    ends = [end.end() for end in _END.finditer(text)]
    return text[: ends[-1]].strip() if ends else text
