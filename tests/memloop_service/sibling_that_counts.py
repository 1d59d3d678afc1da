"""A program of two processes that write down each SIGTERM; the second ends a while after the first. Run with ``-m``."""

import os
import signal
import time
from pathlib import Path

from memloop_service import ServiceSettings, is_parent_of
from memloop_service.siblings import Sibling

MODULE = "tests.memloop_service.sibling_that_counts"
LOG = "COUNTED_IN"
"""The variable with the path of the file."""
_HELD_S = 1.0


def main() -> None:
    """Be the parent, or one of the processes."""
    if is_parent_of(MODULE, ServiceSettings(), 2):
        return
    sibling, log = Sibling.here(), Path(os.environ[LOG])
    assert sibling is not None
    ends_at = float("inf")

    def write(word: str) -> None:
        with log.open("a") as file:
            file.write(f"{sibling.number} {word}\n")

    def told(*_: object) -> None:
        nonlocal ends_at
        write("told")
        ends_at = min(ends_at, time.monotonic() + _HELD_S * sibling.number)

    signal.signal(signal.SIGTERM, told)
    sibling.started.touch()
    write("runs")
    while time.monotonic() < ends_at:
        time.sleep(0.01)


if __name__ == "__main__":
    main()
