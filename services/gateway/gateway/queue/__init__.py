"""Durable jobs: lanes, the runner that executes jobs, and the journal from which a job resumes."""

from gateway.queue.handling import (
    Hold,
    JobCancelled,
    JobResult,
    LaneLost,
    RunnerOptions,
    is_outage,
    queue_rules,
    state_of,
)
from gateway.queue.runner import Runner
from memloop_state.queue.jobs import Depth, Entry, GuardBroken, IndexFull, JobGone, Lease, Submission
from memloop_state.queue.lanes import DEFAULT_TIER, KEEP_MS, LaneQueue
from memloop_state.queue.records import DeadLetter, DeadLetters, JobRecords, Journal, JournalCheckpoints, queued_bytes
from memloop_state.room import QueueRules

__all__ = [
    "DEFAULT_TIER",
    "KEEP_MS",
    "DeadLetter",
    "DeadLetters",
    "Depth",
    "Entry",
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
    "Runner",
    "RunnerOptions",
    "Submission",
    "is_outage",
    "queue_rules",
    "queued_bytes",
    "state_of",
]
