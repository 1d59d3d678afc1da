"""One parser for each kind of reply. All of them read the model's reply, and nothing else: no document, no memory."""

from memloop.loops.parsing.memory_list import FoundList, NoList, find_memory_lines, find_memory_list
from memloop.loops.parsing.reading import Answer, Gate, parse_answer, parse_gate, parse_memory, parse_query

__all__ = [
    "Answer",
    "FoundList",
    "Gate",
    "NoList",
    "find_memory_lines",
    "find_memory_list",
    "parse_answer",
    "parse_gate",
    "parse_memory",
    "parse_query",
]
