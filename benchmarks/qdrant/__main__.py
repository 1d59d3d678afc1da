"""``python -m benchmarks.qdrant``: rankings on Qdrant Edge beside a Qdrant cluster; the last line is one JSON object.

Edge alone, unless ``QDRANT_NODES`` names the nodes of a cluster (``QDRANT_GRPC_PORT``, 6334; ``QDRANT_API_KEY``). The
store's collections there are deleted.
"""

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
import uvloop

from benchmarks.memory.corpus import SIZES
from benchmarks.qdrant.measuring import AT_ONCE, Load, Times, measured
from benchmarks.qdrant.peers import Peer, peers
from memloop.scoring.comparison import percentile

_BLOCK = 512


def main() -> None:
    """Measure and print. The last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.qdrant", description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["1k"], help="memories of 10 users")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    sizes = {size: SIZES[size] for size in asked.sizes}
    figures = uvloop.run(run(sizes, Load(asked.rounds)))
    print(orjson.dumps({"benchmark": "qdrant", **figures, "cores": os.cpu_count()}).decode())


async def run(sizes: Mapping[str, int], load: Load) -> dict[str, float]:
    """Fill all peers with each size in turn, and measure them round by round."""
    figures: dict[str, float] = {}
    for size, memories in sizes.items():
        with tempfile.TemporaryDirectory() as folder:
            async with peers(Path(folder), memories) as there:
                found = await measured(there, load)
                figures[f"edge_bytes_per_memory_{size}"] = round(_allocated(Path(folder)) / memories)
                figures |= {f"{name}_{size}": value for name, value in _figures(there, found).items()}
    return figures


def _allocated(folder: Path) -> int:
    """The disk that all files take, with their log of recent writes."""
    return sum(file.stat().st_blocks * _BLOCK for file in folder.rglob("*") if file.is_file())


def _figures(there: Sequence[Peer], found: Mapping[str, Times]) -> dict[str, float]:
    """Milliseconds of one ranking, searches a second, and the ratios to Edge and of each pair."""
    figures: dict[str, float] = {}
    for peer in there:
        times = found[peer.name]
        p50 = percentile(times.rankings_ms, 50)
        apart, together = percentile(times.apart_ms, 50), percentile(times.together_ms, 50)
        print(
            f"{peer.name}: a ranking {p50:.2f} ms; by the vector alone, with the best memories, {apart:.2f} ms in two "
            f"round trips and {together:.2f} ms in one; {times.per_second:.0f} rankings/s, {AT_ONCE} at once"
        )
        figures |= {f"{peer.name}_ms": round(p50, 3), f"{peer.name}_per_s": round(times.per_second, 1)}
        figures[f"{peer.name}_one_trip_ratio"] = round(together / apart, 3)
    return figures | _ratios(figures)


def _ratios(figures: Mapping[str, float]) -> dict[str, float]:
    pairs = {
        "grpc_over_rest": ("grpc", "rest"),
        "rest_over_edge": ("rest", "edge"),
        "grpc_over_edge": ("grpc", "edge"),
        "all_shards_over_one": ("rest_all_shards", "rest"),
    }
    return {
        f"{name}_{unit}_ratio": round(figures[f"{one}_{unit}"] / figures[f"{other}_{unit}"], 3)
        for name, (one, other) in pairs.items()
        for unit in ("ms", "per_s")
        if f"{one}_{unit}" in figures
    }


if __name__ == "__main__":
    main()
