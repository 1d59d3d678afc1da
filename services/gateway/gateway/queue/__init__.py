"""Durable jobs: lanes, the runner that executes jobs, and the journal from which a job resumes."""

from gateway.queue.runner import (
    Hold,
    JobCancelled,
    JobResult,
    JournalCheckpoints,
    LaneLost,
    Runner,
    RunnerOptions,
    is_outage,
    job_of,
    queue_rules,
    state_of,
)
from memloop_state.queue.jobs import Depth, Entry, GuardBroken, IndexFull, JobGone, Lease, Submission
from memloop_state.queue.lanes import DEFAULT_TIER, KEEP_MS, LaneQueue
from memloop_state.queue.records import DeadLetter, DeadLetters, JobRecords, Journal, queued_bytes
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
    "job_of",
    "queue_rules",
    "queued_bytes",
    "state_of",
]
