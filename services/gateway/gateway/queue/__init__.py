"""Durable jobs: lanes, the runner that executes jobs, and the journal from which a job resumes."""

from gateway.queue.handling import JobCancelled as JobCancelled
from gateway.queue.handling import JobResult as JobResult
from gateway.queue.handling import LaneLost as LaneLost
from gateway.queue.handling import RunnerOptions as RunnerOptions
from gateway.queue.handling import is_outage as is_outage
from gateway.queue.handling import queue_rules as queue_rules
from gateway.queue.handling import state_of as state_of
from gateway.queue.runner import Hold as Hold
from gateway.queue.runner import Runner as Runner
from memloop_state.queue.jobs import Depth as Depth
from memloop_state.queue.jobs import GuardBroken as GuardBroken
from memloop_state.queue.jobs import IndexFull as IndexFull
from memloop_state.queue.jobs import JobGone as JobGone
from memloop_state.queue.jobs import Lease as Lease
from memloop_state.queue.jobs import Submission as Submission
from memloop_state.queue.lanes import DEFAULT_TIER as DEFAULT_TIER
from memloop_state.queue.lanes import KEEP_MS as KEEP_MS
from memloop_state.queue.lanes import LaneQueue as LaneQueue
from memloop_state.queue.records import DeadLetter as DeadLetter
from memloop_state.queue.records import JobRecords as JobRecords
from memloop_state.queue.records import Journal as Journal
from memloop_state.queue.records import JournalCheckpoints as JournalCheckpoints
from memloop_state.queue.records import queued_bytes as queued_bytes
from memloop_state.room import QueueRules as QueueRules
