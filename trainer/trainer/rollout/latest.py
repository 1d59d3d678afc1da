"""Repairs verl's record of the newest checkpoint after a run that was killed while it wrote that record.

verl writes the number of the step into an existing file, in place and after the checkpoint. A process that dies between
opening and writing leaves an empty file, at which verl's next start fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

TRACKER: Final = "latest_checkpointed_iteration.txt"
_LAST_WRITTEN: Final = "data.pt"
"""verl's last file of a checkpoint."""


def repair_tracker(folder: Path) -> None:
    """Write the newest complete step into the folder's record if it holds no number; remove the record if none is."""
    tracker = folder / TRACKER
    if not tracker.is_file() or tracker.read_text("utf-8").strip().isdecimal():
        return
    steps = [int(file.parent.name.rpartition("_")[2]) for file in folder.glob(f"global_step_*/{_LAST_WRITTEN}")]
    if not steps:
        tracker.unlink()
        return
    written = tracker.with_suffix(".part")
    written.write_text(str(max(steps)), "utf-8")
    written.replace(tracker)
