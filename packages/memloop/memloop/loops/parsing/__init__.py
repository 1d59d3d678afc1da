"""One parser for each kind of reply. All of them read the model's reply, and nothing else: no document, no memory."""

from memloop.loops.parsing.memory_list import FoundList, NoList, find_memory_lines, find_memory_list
from memloop.loops.parsing.spoken import (
    Answer,
    Gate,
    Spoken,
    as_written,
    listen,
    parse_answer,
    parse_gate,
    parse_memory,
    parse_query,
    split_thinking,
)
from memloop.loops.parsing.tool_call import FoundCall, NoCall, find_call

__all__ = [
    "Answer",
    "FoundCall",
    "FoundList",
    "Gate",
    "NoCall",
    "NoList",
    "Spoken",
    "as_written",
    "find_call",
    "find_memory_lines",
    "find_memory_list",
    "listen",
    "parse_answer",
    "parse_gate",
    "parse_memory",
    "parse_query",
    "split_thinking",
]
