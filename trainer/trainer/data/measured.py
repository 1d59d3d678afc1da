"""Measures a run for the last line that it prints."""

from __future__ import annotations

import json
import resource
import sys
import time


class Stopwatch:
    """Measures time since its creation."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def line(self, **facts: object) -> str:
        """Format one JSON object: the facts, ``seconds``, and the process's peak resident memory in MiB."""
        return json.dumps({**facts, "seconds": round(time.perf_counter() - self._began, 1), "peak_rss_mib": peak_mib()})


def peak_mib() -> int:
    """Return this process's peak resident memory so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // (1 << 20 if sys.platform == "darwin" else 1 << 10)
