"""Traces of loops for training: kept for tenants that opted in, redacted before they are stored."""

from gateway.traces.capture import RecordedChunks, RecordedIndex, RecordedModel, Recording
from gateway.traces.keeper import Served, TraceKeeper, open_traces

__all__ = [
    "RecordedChunks",
    "RecordedIndex",
    "RecordedModel",
    "Recording",
    "Served",
    "TraceKeeper",
    "open_traces",
]
