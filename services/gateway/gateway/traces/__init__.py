"""Traces of loops for training: kept for tenants that opted in, redacted before they are stored."""

from gateway.traces.capture import RecordedChunks as RecordedChunks
from gateway.traces.capture import RecordedIndex as RecordedIndex
from gateway.traces.capture import RecordedModel as RecordedModel
from gateway.traces.keeper import Served as Served
from gateway.traces.keeper import TraceKeeper as TraceKeeper
from gateway.traces.keeper import open_traces as open_traces
