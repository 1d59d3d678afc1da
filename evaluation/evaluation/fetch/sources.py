"""The public files that the evaluations read: address and licence of each. None is part of this project."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_HUB = "https://huggingface.co/datasets"
_HOTPOT = "CC BY-SA 4.0 (HotpotQA)"
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file at its publisher. ``most_bytes``: where a download stops. ``sha256`` is None where none is published."""

    url: str
    licence: str
    most_bytes: int
    sha256: str | None = None

    @property
    def file_name(self) -> str:
        """The last part of the address."""
        return self.url.rpartition("/")[2]


SOURCES: Final[Mapping[str, PublicFile]] = {
    "locomo": PublicFile(
        "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
        "CC BY-NC 4.0, no commercial use",
        64 * _MIB,
    ),
    "longmemeval-oracle": PublicFile(
        f"{_HUB}/xiaowu0162/longmemeval-cleaned/resolve/main/longmemeval_oracle.json", "MIT", 256 * _MIB
    ),
    "longmemeval-s": PublicFile(
        f"{_HUB}/xiaowu0162/longmemeval-cleaned/resolve/main/longmemeval_s_cleaned.json", "MIT", 1024 * _MIB
    ),
    "longmemeval-m": PublicFile(
        f"{_HUB}/xiaowu0162/longmemeval-cleaned/resolve/main/longmemeval_m_cleaned.json", "MIT", 8192 * _MIB
    ),
    "halumem-medium": PublicFile(
        f"{_HUB}/IAAR-Shanghai/HaluMem/resolve/main/HaluMem-Medium.jsonl",
        "CC BY-NC-ND 4.0, no commercial use",
        256 * _MIB,
    ),
    "halumem-long": PublicFile(
        f"{_HUB}/IAAR-Shanghai/HaluMem/resolve/main/HaluMem-Long.jsonl",
        "CC BY-NC-ND 4.0, no commercial use",
        512 * _MIB,
    ),
    "hotpotqa": PublicFile(
        "http://curtis.ml.cmu.edu/datasets/hotpot/hotpot_dev_distractor_v1.json", _HOTPOT, 256 * _MIB
    ),
    "ruler-hqa-400": PublicFile(
        f"{_HUB}/BytedTsinghua-SIA/hotpotqa/resolve/main/eval_400.json", f"{_HOTPOT}; see its page", 2048 * _MIB
    ),
}
