"""Memories over HTTP, their durable writes, and the writer that decides what to remember."""

from gateway.memory.events import event_id as event_id
from gateway.memory.jobs import MemoryJob as MemoryJob
from gateway.memory.jobs import MemoryQueue as MemoryQueue
from gateway.memory.jobs import dead_write as dead_write
from gateway.memory.jobs import new_event_id as new_event_id
from gateway.memory.jobs import requeue as requeue
from gateway.memory.memory import Memory as Memory
from gateway.memory.memory import MemoryDep as MemoryDep
from gateway.memory.operations import check_has_text as check_has_text
from gateway.memory.operations import erase as erase
from gateway.memory.operations import would_erase as would_erase
from gateway.memory.operations import write_memory as write_memory
from gateway.memory.pending import Standing as Standing
from gateway.memory.pending import ranked as ranked
from gateway.memory.pending import read_beside as read_beside
from gateway.memory.pending import search as search
