"""What a process takes of the machine (Linux): its peak resident memory, and how its main thread gets to a core."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_RESET_PEAK: Final = "5"


def reset_peak(pid: int) -> None:
    """Begin to measure the peak again."""
    Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK)


def peak_bytes(pid: int) -> int:
    """The largest resident size since the reset."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


@dataclass(frozen=True)
class Cores:
    """Seconds that the main thread ran, and that it waited for a core while it could run."""

    ran_s: float
    waited_s: float

    @classmethod
    def of(cls, pid: int) -> "Cores":
        """Since the start of the process."""
        ran, waited, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
        return cls(int(ran) / 1e9, int(waited) / 1e9)

    def since(self, before: "Cores") -> "Cores":
        """From an earlier moment on."""
        return Cores(self.ran_s - before.ran_s, self.waited_s - before.waited_s)

    @property
    def waiting_percent(self) -> float:
        """The share of the time in which it could run and waited."""
        return round(100 * self.waited_s / max(0.001, self.ran_s + self.waited_s), 1)
