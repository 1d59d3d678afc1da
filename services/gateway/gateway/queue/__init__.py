"""Durable jobs: lanes, tickets, the runner that executes jobs, and the journal from which a job resumes."""

from gateway.queue.handling import Hold, JobResult
from gateway.queue.rules import queue_rules
from gateway.queue.runner import Runner, RunnerOptions, is_outage
from memloop_state.queue.dead_letters import DeadLetter, ExpiredLetters, read_dead_letters
from memloop_state.queue.jobs import (
    Depth,
    Entry,
    GuardBroken,
    IndexFull,
    JobCancelled,
    JobGone,
    LaneLost,
    Lease,
    Submission,
)
from memloop_state.queue.journal import Journal, JournalCheckpoints
from memloop_state.queue.lanes import KEEP_MS, LaneQueue
from memloop_state.queue.records import JobRecords, QueuedBytes, queued_bytes
from memloop_state.queue.tickets import DEFAULT_TIER
from memloop_state.room import QueueRules

__all__ = [
    "DEFAULT_TIER",
    "KEEP_MS",
    "DeadLetter",
    "Depth",
    "Entry",
    "ExpiredLetters",
    "GuardBroken",
    "Hold",
    "IndexFull",
    "JobCancelled",
    "JobGone",
    "JobRecords",
    "JobResult",
    "Journal",
    "JournalCheckpoints",
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
