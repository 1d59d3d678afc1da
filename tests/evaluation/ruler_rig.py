"""An evaluation of the small files in ruler_data, on scripted engines."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from evaluation.ruler.fleet import Effort
from evaluation.ruler.items import source_of
from evaluation.ruler.readers import Setup
from evaluation.ruler.records import Record, Results
from evaluation.ruler.run import Evaluation, evaluate
from memloop.profiles import profile_files

DATA = Path(__file__).parent / "ruler_data"
HQA_FILE = DATA / "hqa.jsonl"
NIAH_FILE = DATA / "niah_multiquery_256.json"
SETUP = Setup(kind="loop", model="m", profile_files=profile_files("default"), chunk_tokens=64)


def evaluation(out: Path, urls: Sequence[str], **changes: Any) -> Evaluation:
    """Both files, a few items at once, no pauses."""
    effort = Effort(at_once=2, attempts=2, pause_s=0.001)
    sources = (source_of(str(HQA_FILE)), source_of(str(NIAH_FILE)))
    return replace(Evaluation(sources, tuple(urls), SETUP, out, effort=effort), **changes)


async def evaluated(asked: Evaluation) -> dict[str, Any]:
    """The last line. The evaluation has an event loop of its own, in a thread."""
    return orjson.loads(await asyncio.to_thread(evaluate, asked, report=_ignore))


def records_of(asked: Evaluation) -> Sequence[Record]:
    """What the results file holds."""
    with Results(asked.out / "results.jsonl", asked.described()) as results:
        return results.records


def means(last_line: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Each row's scores without their intervals."""
    return {
        f"{row['task']} {row['size']}": {name: score["mean"] for name, score in row["scores"].items()}
        for row in last_line["rows"]
    }


def _ignore(line: str) -> None:
    del line
