"""Durable jobs in Redis: lanes, tickets, the runner that executes jobs, and the journal from which a job resumes."""

from gateway.queue.dead_letters import DeadLetter, ExpiredLetters, read_dead_letters
from gateway.queue.entering import BEGAN, LIST_IN
from gateway.queue.handling import Hold, JobResult
from gateway.queue.holdings import QueuedBytes, queued_bytes
from gateway.queue.jobs import Depth, Entry, GuardBroken, IndexFull, JobCancelled, JobGone, LaneLost, Lease, Submission
from gateway.queue.journal import Journal, JournalCheckpoints
from gateway.queue.key_names import JobKeys, JobPartition, Keys
from gateway.queue.lanes import KEEP_MS, LaneQueue
from gateway.queue.rules import QueueRules, queue_rules
from gateway.queue.runner import Runner, RunnerOptions, is_outage
from gateway.queue.tickets import DEFAULT_TIER

__all__ = [
    "BEGAN",
    "DEFAULT_TIER",
    "KEEP_MS",
    "LIST_IN",
    "DeadLetter",
    "Depth",
    "Entry",
    "ExpiredLetters",
    "GuardBroken",
    "Hold",
    "IndexFull",
    "JobCancelled",
    "JobGone",
    "JobKeys",
    "JobPartition",
    "JobResult",
    "Journal",
    "JournalCheckpoints",
    "Keys",
    "LaneLost",
    "LaneQueue",
    "Lease",
    "QueueRules",
    "QueuedBytes",
    "Runner",
    "RunnerOptions",
    "Submission",
    "is_outage",
    "queue_rules",
    "queued_bytes",
    "read_dead_letters",
]
