"""RULER through the loops: a whole run on scripted engines, and all that can go wrong with one."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.ruler.fleet import Effort, Engine, Job, read_all
from evaluation.ruler.items import Item
from evaluation.ruler.readers import Reading
from evaluation.ruler.records import Record, Results
from memloop.ports import Checkpoints
from memloop.wire.long_read import ReadUsage
from memloop.wire.reading import Parallel, ReadingOptions
from tests.evaluation.ruler_rig import DATA, HQA_FILE, SETUP, evaluated, evaluation, means, records_of
from tests.fakes.harbour_engine import HarbourEngine, prompt_of
from trainer.data.json_rows import DataError

ITEMS = 9
PERFECT = {"published": 1.0, "published_plain": 0.0, "strict": 1.0, "em": 1.0, "f1": 1.0, "sub_em": 1.0}


async def test_a_perfect_reader_gets_all_scores(tmp_path: Path) -> None:
    async with HarbourEngine().running() as engine:
        found = await evaluated(evaluation(tmp_path, [engine.url]))
    needles = {"published": 1.0, "published_plain": 0.0, "references": 1.0}
    assert means(found) == {"hqa 4": PERFECT, "hqa 8": PERFECT, "niah_multiquery 256": needles}
    assert (found["items"], found["failed"]) == (ITEMS, 0)
    assert "| hqa | 4 | 3 | 3 | 0 | 100.0 [100.0, 100.0] |" in (tmp_path / "results.md").read_text()
    assert (tmp_path / "results.svg").read_text().startswith("<?xml")


async def test_every_item_goes_through_the_reading_loop_chunk_by_chunk(tmp_path: Path) -> None:
    async with HarbourEngine().running() as engine:
        asked = evaluation(tmp_path, [engine.url])
        await evaluated(asked)
    records = records_of(asked)
    assert sum(record.calls for record in records) == len(engine.bodies)
    assert all(record.calls > 2 for record in records)
    assert all(body["seed"] == 0 for body in engine.bodies)


async def test_options_reach_the_loop(tmp_path: Path) -> None:
    setup = replace(SETUP, options=ReadingOptions(parallel=Parallel(segments=2)))
    async with HarbourEngine().running() as engine:
        found = await evaluated(evaluation(tmp_path, [engine.url], setup=setup))
    first_memories = [prompt for prompt in map(prompt_of, engine.bodies) if "<memory>\nNo previous memory" in prompt]
    assert len(first_memories) == 2 * ITEMS
    assert means(found)["hqa 8"] == PERFECT


async def test_a_run_that_is_given_again_reads_nothing_and_reports_the_same(tmp_path: Path) -> None:
    async with HarbourEngine().running() as engine:
        first = await evaluated(evaluation(tmp_path, [engine.url]))
        calls = len(engine.bodies)
        again = await evaluated(evaluation(tmp_path, [engine.url]))
    assert (again, len(engine.bodies)) == (first, calls)


async def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    async with HarbourEngine(stalls_from=30).running() as engine:
        asked = evaluation(tmp_path, [engine.url])
        process = await _started(tmp_path, engine.url)
        await engine.stalled.wait()
        process.kill()
        await process.wait()
        engine.lift()
        kept, read_before = records_of(asked), len(engine.bodies)
        found = await evaluated(asked)
    assert 0 < len(kept) < ITEMS
    assert (found["items"], found["failed"]) == (ITEMS, 0)
    new = [record for record in records_of(asked) if record not in kept]
    assert len(new) == ITEMS - len(kept)
    assert sum(record.calls for record in new) == len(engine.bodies) - read_before


class Answering:
    """A reader that needs no engine."""

    async def read(self, item: Item, *, seed: int, paid: Checkpoints) -> Reading:
        del item, seed, paid
        return Reading("a", "a", ReadUsage())

    async def check(self) -> None: ...

    async def close(self) -> None: ...


async def test_an_error_of_the_results_file_is_raised_as_it_is() -> None:
    def keep(record: Record) -> None:
        raise OSError(28, f"No space left on device for {record.task}")

    jobs = iter([Job(Item("hqa", 1, 0, "q", "c", ("a",)), 0)])
    with pytest.raises(OSError, match="No space left on device for hqa"):
        await read_all(jobs, [Engine("u", Answering())], effort=Effort(1, 1), keep=keep)


async def test_a_full_disk_ends_the_run_with_a_message_and_a_later_run_goes_on(tmp_path: Path) -> None:
    async with HarbourEngine().running() as engine:
        limited = ["bash", "-c", 'ulimit -f 2; exec "$@"', "bash"]  # KiB of a file: room for a few results
        process = await _started(tmp_path, engine.url, within=limited, stderr=asyncio.subprocess.PIPE)
        _, told = await process.communicate()
        asked = evaluation(tmp_path, [engine.url])
        kept = len(records_of(asked))
        found = await evaluated(asked)
    assert process.returncode == 2
    assert told.decode().splitlines()[-1] == "[Errno 27] File too large"
    assert b"Traceback" not in told
    assert 0 < kept < ITEMS
    assert (found["items"], found["failed"]) == (ITEMS, 0)


async def _started(
    out: Path, url: str, *, within: Sequence[str] = (), stderr: int = asyncio.subprocess.DEVNULL
) -> asyncio.subprocess.Process:
    arguments = ["--data", str(HQA_FILE), "--data", str(DATA / "niah_multiquery_256.json"), "--engine-url", url]
    arguments += ["--model", "m", "--chunk-tokens", "64", "--at-once", "2", "--out", str(out)]
    command = [*within, sys.executable, "-m", "evaluation", "ruler", "run", *arguments]
    return await asyncio.create_subprocess_exec(*command, stderr=stderr)


async def test_half_a_last_line_is_cut_off_and_its_item_read_again(tmp_path: Path) -> None:
    async with HarbourEngine().running() as engine:
        asked = evaluation(tmp_path, [engine.url])
        first = await evaluated(asked)
        path = asked.out / "results.jsonl"
        path.write_bytes(path.read_bytes()[:-20])
        assert len(records_of(asked)) == ITEMS - 1
        again = await evaluated(asked)
    assert means(again) == means(first)
    assert len(path.read_text().splitlines()) == 1 + ITEMS


async def test_results_of_another_run_are_refused(tmp_path: Path) -> None:
    async with HarbourEngine().running() as engine:
        await evaluated(evaluation(tmp_path, [engine.url]))
        with pytest.raises(DataError, match="of another run: strategy differ"):
            await evaluated(evaluation(tmp_path, [engine.url], setup=replace(SETUP, strategy="memreread")))


def test_two_runs_never_write_one_file(tmp_path: Path) -> None:
    with Results(tmp_path / "r.jsonl", {}), pytest.raises(DataError, match="in use"):
        Results(tmp_path / "r.jsonl", {})


async def test_what_a_failing_engine_leaves_is_read_by_the_others(tmp_path: Path) -> None:
    async with HarbourEngine(fails_from=3).running() as failing, HarbourEngine().running() as whole:
        asked = evaluation(tmp_path, [failing.url, whole.url])
        found = await evaluated(asked)
    assert (found["items"], found["failed"]) == (ITEMS, 0)
    assert {record.engine for record in records_of(asked)} == {whole.url}
    assert any(record.attempts > 1 for record in records_of(asked))


async def test_another_engine_goes_on_after_the_chunks_that_were_paid(tmp_path: Path) -> None:
    async with HarbourEngine(fails_from=3).running() as failing, HarbourEngine().running() as whole:
        asked = evaluation(tmp_path, [failing.url, whole.url])
        await evaluated(asked)
    assert sum(record.calls for record in records_of(asked)) == len(whole.bodies) + 2


async def test_an_item_that_every_engine_failed_is_wrong_and_is_read_again_next_time(tmp_path: Path) -> None:
    async with HarbourEngine(fails_from=1).running() as engine:
        asked = evaluation(tmp_path, [engine.url])
        failed = await evaluated(asked)
        attempts = {record.attempts for record in records_of(asked)}
        engine.lift()
        found = await evaluated(asked)
    assert (failed["items"], failed["failed"], means(failed)["hqa 4"]["em"]) == (ITEMS, ITEMS, 0.0)
    assert attempts == {2}
    assert (found["failed"], means(found)["hqa 4"]) == (0, PERFECT)


async def test_a_request_that_no_engine_would_take_is_tried_once(tmp_path: Path) -> None:
    async with HarbourEngine(fails_from=1, status=400).running() as engine:
        asked = evaluation(tmp_path, [engine.url], limit=1)
        await evaluated(asked)
    assert [record.attempts for record in records_of(asked)] == [1, 1, 1]
    assert "out of order" in str(records_of(asked)[0].error)


async def test_a_run_without_any_engine_reads_nothing(tmp_path: Path) -> None:
    asked = evaluation(tmp_path, ["http://127.0.0.1:9/v1"])
    with pytest.raises(DataError, match="no engine answers"):
        await evaluated(asked)
    assert not records_of(asked)


async def test_each_seed_reads_each_item_and_an_item_counts_once(tmp_path: Path) -> None:
    async with HarbourEngine().running() as engine:
        found = await evaluated(evaluation(tmp_path, [engine.url], seeds=(1, 2), limit=1))
    assert sorted({str(body["seed"]) for body in engine.bodies}) == ["1", "2"]
    assert [(row["items"], row["reads"]) for row in found["rows"]] == [(1, 2)] * 3
