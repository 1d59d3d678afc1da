"""Memories over HTTP, their durable writes, and the writer that decides what to remember."""

from gateway.memory.events import event_id
from gateway.memory.jobs import MemoryJob, MemoryQueue, dead_write, new_event_id, requeue
from gateway.memory.memory import Memory, MemoryDep
from gateway.memory.operations import check_has_text, erase, would_erase
from gateway.memory.operations import write as write_memory
from gateway.memory.pending import Standing, ranked, read_beside, search

__all__ = [
    "Memory",
    "MemoryDep",
    "MemoryJob",
    "MemoryQueue",
    "Standing",
    "check_has_text",
    "dead_write",
    "erase",
    "event_id",
    "new_event_id",
    "ranked",
    "read_beside",
    "requeue",
    "search",
    "would_erase",
    "write_memory",
]
