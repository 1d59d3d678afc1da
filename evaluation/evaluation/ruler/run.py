"""Runs one evaluation: reads the items without an answer and reports all records so far."""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.ruler.fleet import DEFAULT_EFFORT, Effort, Engine, Job, read_all
from evaluation.ruler.items import DEFAULT_SUFFIXES, Item, Source, items
from evaluation.ruler.on_ray import read_on_ray
from evaluation.ruler.readers import Setup, reader_at, splitter_of
from evaluation.ruler.records import Record, RecordKey, Results, record_key
from evaluation.ruler.report import best_table, last_line, save_plot, table
from evaluation.ruler.scores import kind_rows_of, rows_of
from memloop.profiles import profile_from_files
from memloop.wire.errors import MemloopError
from trainer.data.json_rows import DataError

_REPORT_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The data, readers and effort of a run. ``ray`` is ``ray.init``'s address (``auto``, ``local``).

    ``suffixes`` as of ``items``. ``documents``: the texts of data that holds numbers of documents, as of
    ``documents_by_number``.
    """

    sources: tuple[Source, ...]
    urls: tuple[str, ...]
    setup: Setup
    out: Path
    seeds: tuple[int, ...] = (0,)
    effort: Effort = DEFAULT_EFFORT
    limit: int | None = None
    ray: str | None = None
    documents: tuple[str, ...] = ()
    suffixes: Mapping[str, str] = field(default_factory=lambda: DEFAULT_SUFFIXES)

    def items(self) -> Iterator[Item]:
        """Yield the items of all sources. Raises DataError."""
        return items(self.sources, limit=self.limit, documents=self.documents, suffixes=self.suffixes)

    def described(self) -> dict[str, object]:
        """Return the settings that make two runs comparable: a results file holds records of one description."""
        setup = self.setup
        here = setup.kind != "gateway"
        return {
            "reader": setup.kind,
            "model": setup.model,
            "strategy": setup.strategy,
            "max_rereads": setup.max_rereads,
            "chunk_tokens": setup.chunk_tokens,
            "memory_tokens": setup.memory_tokens,
            "options": json.loads(setup.options.model_dump_json(exclude_none=True)),
            "profile": profile_from_files(setup.profile_files).content_hash if here else None,
            "splitter": splitter_of(setup).name if here else None,
            "window": setup.window_tokens,
            **({} if setup.thinking is None else {"thinking": setup.thinking}),
            **({} if setup.sends_seed else {"sends_seed": False}),
            **({} if setup.reply_tokens is None else {"reply_tokens": setup.reply_tokens}),
        }


def evaluate(evaluation: Evaluation, *, report: Callable[[str], None]) -> str:
    """Read the missing items, write table and figure, and return the last line. Raises DataError."""
    wanted = {record_key(item, seed) for item in evaluation.items() for seed in evaluation.seeds}
    with Results(evaluation.out / "results.jsonl", evaluation.described()) as results:
        missing = {key for key in wanted if not results.has(key)}
        report(f"{len(wanted) - len(missing)} of {len(wanted)} reads already done")
        if missing:
            _read(evaluation, missing, _Progress(results, len(missing), report).keep, report)
        return _report(evaluation, [record for record in results.records if record.key in wanted])


def _jobs(evaluation: Evaluation, missing: set[RecordKey]) -> Iterator[Job]:
    for item in evaluation.items():
        yield from _jobs_of(item, evaluation.seeds, missing)


def _jobs_of(item: Item, seeds: Iterable[int], missing: set[RecordKey]) -> Iterator[Job]:
    return (Job(item, seed) for seed in seeds if record_key(item, seed) in missing)


def _read(
    evaluation: Evaluation, missing: set[RecordKey], keep: Callable[[Record], None], report: Callable[[str], None]
) -> None:
    jobs = _jobs(evaluation, missing)
    if evaluation.ray is None:
        asyncio.run(_read_here(evaluation, jobs, keep, report))
        return
    read_on_ray(jobs, evaluation.urls, evaluation.setup, effort=evaluation.effort, address=evaluation.ray, keep=keep)


async def _read_here(
    evaluation: Evaluation, jobs: Iterator[Job], keep: Callable[[Record], None], report: Callable[[str], None]
) -> None:
    async with AsyncExitStack() as stack:
        engines = [Engine(url, reader_at(url, evaluation.setup)) for url in evaluation.urls]
        for engine in engines:
            stack.push_async_callback(engine.reader.close)
        await _check(engines, report)
        await read_all(jobs, engines, effort=evaluation.effort, keep=keep)


async def _check(engines: Sequence[Engine], report: Callable[[str], None]) -> None:
    """Report the engines that do not answer; they may recover. Raises DataError when none answers."""
    faults = 0
    for engine in engines:
        try:
            await engine.reader.check()
        except MemloopError as error:
            faults += 1
            report(f"{engine.url}: {error.message}")
    if faults == len(engines):
        raise DataError("no engine answers: nothing was read")


class _Progress:
    """Keeps each record and reports progress at intervals."""

    def __init__(self, results: Results, total: int, report: Callable[[str], None]) -> None:
        self._results = results
        self._total = total
        self._report = report
        self._began = self._reported = time.monotonic()
        self._done = self._failed = 0

    def keep(self, record: Record) -> None:
        self._results.append(record)
        self._done += 1
        self._failed += record.error is not None
        now = time.monotonic()
        if self._done == self._total or now - self._reported >= _REPORT_EVERY_S:
            self._reported = now
            left_s = (now - self._began) / self._done * (self._total - self._done)
            self._report(f"{self._done}/{self._total} read, {self._failed} failed, about {left_s:.0f} s left")


def _report(evaluation: Evaluation, records: Sequence[Record]) -> str:
    rows = rows_of(records, seed=evaluation.seeds[0])
    kinds = kind_rows_of(records, seed=evaluation.seeds[0])
    tables = [table(rows), *([table(kinds)] if kinds else [])]
    if len(evaluation.seeds) > 1:
        tables.append(f"The best of {len(evaluation.seeds)} seeds, as some papers print:\n\n{best_table(rows)}")
    (evaluation.out / "results.md").write_text("\n".join(tables), "utf-8")
    if rows:
        way = evaluation.setup.strategy if evaluation.setup.kind != "direct" else "direct"
        save_plot(rows, evaluation.out / "results.svg", title=f"{evaluation.setup.model}, {way}")
    return last_line(rows, evaluation.described(), kinds=kinds)


def to_stderr(line: str) -> None:
    """Print progress to stderr, apart from the result."""
    print(line, file=sys.stderr, flush=True)
