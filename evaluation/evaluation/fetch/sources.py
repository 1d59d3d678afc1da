"""The public files that the evaluations read: address and licence of each. None is part of this project."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_HUB = "https://huggingface.co/datasets"
_HOTPOT = "CC BY-SA 4.0 (HotpotQA)"
_MEMAGENT = f"{_HUB}/BytedTsinghua-SIA/hotpotqa/resolve/main"
_MEMREREAD = "https://raw.githubusercontent.com/iiGray/MemReread/main/datas"
_SAMPLE = "names none; one item"
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
    **{
        f"ruler-hqa-{documents}": PublicFile(
            f"{_MEMAGENT}/eval_{documents}.json", f"{_HOTPOT}; see its page", (64 + 5 * documents) * _MIB
        )
        for documents in (50, 100, 200, 400, 800, 1600, 3200, 6400)
    },
    **{
        f"ruler-hqa-{documents}": PublicFile(
            f"{_MEMAGENT}/eval_{documents}.json", f"{_HOTPOT}; see its page", 1024 * _MIB
        )
        for documents in (12800, 25600)
    },
    **{
        f"memagent-{split}": PublicFile(
            f"{_MEMAGENT}/hotpotqa_{split}.parquet", f"{_HOTPOT}; see its page", 32_768 * _MIB
        )
        for split in ("train", "dev")
    },
    **{
        f"memreread-2wiki-{length}": PublicFile(
            f"{_MEMREREAD}/2wikimultihopqa/eval_2wikimultihopqa_{length}.json", _SAMPLE, 64 * _MIB
        )
        for length in ("8k", "16k", "32k", "64k", "128k")
    },
    "memreread-global-8k": PublicFile(f"{_MEMREREAD}/global_reasoning/global_reasoning_8k.json", _SAMPLE, 64 * _MIB),
}
"""MemAgent's addresses are those of its README; which of them its publisher keeps was not tried. MemReread's repository
has one item of each length.
"""
