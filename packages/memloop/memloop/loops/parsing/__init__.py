"""One parser for each kind of reply. All of them read the model's reply, and nothing else: no document, no memory."""

from memloop.loops.parsing.memory_list import FoundList, NoList, find_memory_lines, find_memory_list
from memloop.loops.parsing.reading import Answer, Gate, parse_answer, parse_gate, parse_memory, parse_query
from memloop.loops.parsing.reply import (
    FoundCall,
    NoCall,
    Spoken,
    as_written,
    find_call,
    listen,
    split_thinking,
)

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
