"""Backups on a schedule: what they read and reach, and which of them are kept."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.chart.chart_release import CHART, Object, Rendered, changed, values_of
from tests.deploy.chart.test_chart_connections import inner_flows

SCRIPT = CHART / "files/backup.sh"
STUB = """#!/bin/sh
# python -m memory_store.backup COMMAND FOLDER
echo "$3" >> "$CALLS"
[ "$3" != "${FAILS:-}" ] || exit 1
[ "$3" != create ] || { mkdir -p "$4" && [ "${HALF:-}" ] || touch "$4/manifest.json"; }
"""


@pytest.fixture
def job(chart: Rendered) -> Object:
    return chart.objects(values_of("backup")).named("CronJob", "demo-backup")["spec"]


def container(job: Object) -> Any:
    return job["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]


def test_backups_are_off_unless_asked_for(chart: Rendered, minimal: dict[str, Any]) -> None:
    assert chart.objects(minimal).of("CronJob") == []


def test_a_backup_runs_on_the_schedule_and_never_beside_another(job: Object) -> None:
    assert job["schedule"] == "30 1 * * *"
    assert job["concurrencyPolicy"] == "Forbid"
    assert job["jobTemplate"]["spec"]["activeDeadlineSeconds"] > 0


def test_a_backup_knows_both_databases_and_the_documents(job: Object) -> None:
    env = {entry["name"]: entry.get("value") for entry in container(job)["env"]}
    assert env["MEMLOOP_REDIS_URL"] == "redis://:$(REDIS_PASSWORD)@demo-redis:6379/0"
    assert env["QDRANT_URL"] == "http://demo-qdrant:6333"
    assert env["MEMLOOP_STORAGE_URL"] == "file:///data"
    assert {"REDIS_PASSWORD", "QDRANT_API_KEY"} <= env.keys()
    mounts = {mount["name"]: mount for mount in container(job)["volumeMounts"]}
    assert mounts["documents"] == {"name": "documents", "mountPath": "/data", "readOnly": True}


def test_documents_in_a_bucket_are_not_copied(chart: Rendered) -> None:
    values = changed(values_of("backup"), "storage", {"url": "s3://bucket/files"})
    spec = chart.objects(values).named("CronJob", "demo-backup")["spec"]
    assert "MEMLOOP_STORAGE_URL" not in {entry["name"] for entry in container(spec)["env"]}


@pytest.mark.parametrize("direction", ["ingress", "egress"])
def test_a_backup_reaches_redis_and_qdrant_and_nothing_else(chart: Rendered, direction: str) -> None:
    flows = inner_flows(chart.objects(values_of("backup")), direction)
    assert {flow for flow in flows if "backup" in flow} == {("backup", "redis", 6379), ("backup", "qdrant", 6333)}


def test_an_own_claim_for_backups_outlives_the_release(chart: Rendered) -> None:
    claim = chart.objects(values_of("everything")).named("PersistentVolumeClaim", "demo-backup")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    made = chart.objects(values_of("backup")).of("PersistentVolumeClaim")
    assert "demo-backup" not in {one["metadata"]["name"] for one in made}


def run(folder: Path, *, keep: int, **environment: str) -> tuple[int, list[str]]:
    """Status of the script, and the commands that it gave. Programs beside python are the machine's."""
    programs = folder.parent / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "python").write_text(STUB)
    (programs / "python").chmod(0o755)
    calls = folder.parent / "calls"
    given = {"BACKUPS": str(folder), "KEEP": str(keep), "CALLS": str(calls), **environment}
    path = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(["sh", SCRIPT], env={**os.environ, **given, "PATH": path}, capture_output=True, text=True)
    return done.returncode, calls.read_text().split()


def made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "manifest.json").touch()


OLD = ("2026-01-01T020000Z", "2026-01-02T020000Z", "2026-01-03T020000Z")


def test_a_backup_is_checked_and_the_oldest_ones_go(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    made(folder, *OLD)
    (folder / "lost+found").mkdir()
    assert run(folder, keep=2) == (0, ["create", "check"])
    left = sorted(path.name for path in folder.iterdir())
    assert left[0] == OLD[-1]
    assert left[-1] == "lost+found"
    assert len(left) == 3


def test_the_first_backup_deletes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    assert run(folder, keep=2)[0] == 0
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("fails", ["create", "check"])
def test_a_backup_that_fails_deletes_none_that_is_whole(tmp_path: Path, fails: str) -> None:
    folder = tmp_path / "backups"
    made(folder, *OLD)
    assert run(folder, keep=1, FAILS=fails)[0] == 1
    assert set(OLD) <= {path.name for path in folder.iterdir()}


def test_a_folder_without_a_manifest_goes_before_the_next_backup(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    (folder / "2026-01-04T020000Z").mkdir(parents=True)
    assert run(folder, keep=3)[0] == 0
    assert "2026-01-04T020000Z" not in {path.name for path in folder.iterdir()}
