"""A checkpoint's whole way on one machine, with processes in place of pods: ``make test-rollout``.

Traces of production → rows → two GRPO steps → export → object storage → model cache → candidate engine → gate
→ canary → promoted. Before that the candidate's engine dies in the canary, and after it the gate refuses a spoilt one:
both times the incumbent serves every request.
"""

import random
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from memloop.profiles import load_profile
from tests.dialogues.scripted import TINY
from tests.fakes.processes import wait_for
from tests.stack.checkpoint_way import (
    CANDIDATE,
    INCUMBENT,
    TRAINER,
    Clients,
    Places,
    Table,
    ask,
    launcher,
    promote,
    python,
    run,
    stack,
    text_of,
)
from tests.stack.test_gate import write_export
from trainer.data import schemas
from trainer.data.parquet import write_parquet
from trainer.data.tiny_rows import Hardness, tiny_rows
from trainer.gate.comparison import rows_needed
from trainer.gate.held_out import open_held_out
from trainer.rollout.tasks import ReadTask
from trainer.tiny.prose import book

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
STEPS, READS = 2, 10


@pytest.fixture(scope="module")
def table() -> Generator[Table]:
    table = Table()
    yield table
    print("\nstep                                  took     result", *table.rows, sep="\n")


def rows_of(path: Path, *, seed: int, count: int) -> Path:
    """Documents of two chunks of the tiny world."""
    rows = tiny_rows(random.Random(seed), "memagent", load_profile("tiny"), book("held_out"), Hardness(chunks=2))
    write_parquet(islice(rows, count), path, schemas.READING)
    return path


def traces_of(places: Places, documents: Path, out: Path) -> Path:
    """What production keeps of reads, once the tenant opted in."""
    assert ask(f"{places.url}/v1/admin/trace-settings", {"enabled": True}, method="PUT")[0] == 200
    for _, task in open_held_out(documents, None).tasks():
        assert isinstance(task, ReadTask)
        read = {"question": task.question, "document": {"text": task.context}, "model": INCUMBENT}
        status, answer = ask(f"{places.url}/v1/long-read", read)
        assert status == 200, answer
    out.write_text(text_of(f"{places.url}/v1/admin/traces"))
    return out


def trained(rows: Path, folder: Path) -> Path:
    """The checkpoint after two GRPO steps on the CPU, as Hugging Face files."""
    overrides = {
        "data.train_files": rows,
        "data.val_files": rows,
        "data.train_batch_size": 4,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 4,
        "actor_rollout_ref.actor.optim.lr": 1e-7,
        "actor_rollout_ref.rollout.n": 2,
        "trainer.total_training_steps": STEPS,
        "trainer.val_before_train": "false",
        "trainer.test_freq": -1,
        "trainer.save_freq": STEPS,
        "trainer.default_local_dir": folder / "run",
        "trainer.logger": "[console]",
    }
    recipe = ["--recipe", "trainer/recipes/tiny-memagent-cpu.yaml"]
    given = [f"{key}={value}" for key, value in overrides.items()]
    beside_a_stack = {"RAY_worker_niceness": "0"}  # Ray's default is 15: its workers would wait for the processor
    done = run([TRAINER, "-m", "trainer", "train", *recipe, *given], environment=beside_a_stack)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    checkpoint = folder / "run" / f"global_step_{STEPS}"
    command = [TRAINER, "-m", "trainer", "export", "--checkpoint", checkpoint, "--base", TINY, "--profile", "tiny"]
    done = run([*command, "--out", folder / "export"])
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "export"


def fetched(export: Path, folder: Path) -> Path:
    """The export, through object storage, in a model cache."""
    url = f"file://{folder}/bucket/{export.name}"
    python("trainer", "publish", export, url)
    python("inference.main", "fetch", url, folder / "cache" / export.name)
    return folder / "cache" / export.name


def stop_after_the_gate(process: "subprocess.Popen[bytes]", places: Places, line: str) -> None:
    """End the candidate's launcher and engine once this is the gate's line."""
    if line.startswith("gate "):
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: ask(f"{places.launcher_url(CANDIDATE)}/livez")[0] == 0, "the candidate's end")


def test_a_checkpoint_goes_from_traces_to_production_or_back(tmp_path: Path, table: Table) -> None:
    places = Places()
    models = places.write_models(tmp_path / "models.toml")
    held_out = rows_of(tmp_path / "held-out.parquet", seed=7, count=rows_needed(0.2))
    with launcher(places, INCUMBENT, tmp_path), stack(places, tmp_path / "home", models):
        way = Way(places, Clients(places.url), held_out, tmp_path, table)
        candidate = way.candidate()
        way.rolled_back(candidate)
        way.promoted(candidate)
        way.refused(write_export(tmp_path / "spoilt", noise=1.0))
    chats = f"{way.clients.asked} chats meanwhile, {way.clients.failed} failed, while the candidate's engine was dead"
    table.rows.append(chats)


@dataclass(frozen=True)
class Way:
    """The parts of the way, in their order. After each, every chat succeeds."""

    places: Places
    clients: Clients
    held_out: Path
    folder: Path
    table: Table

    def candidate(self) -> Path:
        """A checkpoint that production's own traces trained, in the model cache."""
        folder, table = self.folder, self.table
        with table.step(f"{READS} reads in production") as result:
            documents = rows_of(folder / "documents.parquet", seed=1, count=READS)
            traces = traces_of(self.places, documents, folder / "traces.jsonl")
            result.append(f"{len(traces.read_text().splitlines()) - 1} traces kept")
        with table.step("traces to rows") as result:
            python("trainer", "data", "from-traces", "--traces", traces, "--out", folder / "data")
            count = open_held_out(folder / "data/reading.parquet", None).count
            assert count >= 4
            result.append(f"{count} rows")
        with table.step(f"{STEPS} GRPO steps, and the export"):
            export = trained(folder / "data/reading.parquet", folder)
        with table.step("object storage to the model cache"):
            return fetched(export, folder)

    def rolled_back(self, candidate: Path) -> None:
        """The candidate passes the gate, and its engine dies in the canary."""
        step = self.table.step("gate, canary; its engine dies")
        with self._candidate_at(candidate) as engine, self.clients.busy(), step as result:
            stop = partial(stop_after_the_gate, engine, self.places)
            status, said = promote(self.places, candidate, self.held_out, self.folder / "gated", on_line=stop)
            assert (status, "it fails more often than" in said) == (1, True), said
            result.append("rolled back")
        assert self._who_serves() == {INCUMBENT}

    def promoted(self, candidate: Path) -> None:
        """All requests go to the candidate, and no chat fails meanwhile."""
        failed = self.clients.failed
        with self._candidate_at(candidate):
            with self.clients.busy(), self.table.step("gate, canary, promotion") as result:
                status, said = promote(self.places, candidate, self.held_out, self.folder / "gated")
                assert status == 0, said
                result.append("promoted")
            assert self._who_serves() == {CANDIDATE}
            assert ask(f"{self.places.url}/v1/admin/rollouts?model={INCUMBENT}", method="DELETE")[0] == 200
        assert self.clients.failed == failed

    def refused(self, export: Path) -> None:
        """The gate refuses the candidate: no request goes to it."""
        spoilt, out = fetched(export, self.folder), self.folder / "refused"
        shutil.copytree(self.folder / "gated", out, ignore=shutil.ignore_patterns("candidate.jsonl"))
        step = self.table.step("a spoilt one: gate")
        with self._candidate_at(spoilt), self.clients.busy(), step as result:
            status, said = promote(self.places, spoilt, self.held_out, out)
            assert (status, "refused: " in said) == (1, True), said
            result.append("refused")
        assert self._who_serves() == {INCUMBENT}

    def _candidate_at(self, weights: Path) -> AbstractContextManager["subprocess.Popen[bytes]"]:
        return launcher(self.places, CANDIDATE, self.folder, weights=weights)

    def _who_serves(self) -> set[str]:
        """Who answers the next chats of twenty users. All of them succeed."""
        fresh = Clients(self.places.url)
        assert {fresh.chat(f"after-{number}") for number in range(20)} == {200}
        return set(fresh.by)
