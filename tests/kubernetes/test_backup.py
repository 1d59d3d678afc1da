"""The chart's CronJob backs up; everything is deleted; the backup is put back and every memory is there."""

from collections.abc import Callable
from typing import Final

from tests.kubernetes.api import Object
from tests.kubernetes.cluster import name_of, until
from tests.kubernetes.release import NAME, Release

_WRITES: Final = 20
_JOB_S: Final = 600.0
_STATELESS: Final = ("gateway", "worker", "memory-store")
_REFILL_REDIS: Final = (
    "rm -rf /redis/* && python -m memory_store.backup restore $(ls -1d /backups/*/ | tail -1) --redis-dir /redis"
)


def test_a_backup_brings_back_what_was_lost(release: Release, row: Callable[[str], None]) -> None:
    cluster, space = release.cluster, release.namespace
    with release.loaded(writes=2) as load:
        load.until_more("acknowledged", _WRITES)
        written = load.stop()["acknowledged"]
    job = backup_job(release)
    cluster.create(space, job)
    cluster.wait_job(space, name_of(job), timeout_s=_JOB_S)
    replicas = {name: len(cluster.components(space, name)) for name in _STATELESS}
    for name in _STATELESS:
        cluster.scale(space, "Deployment", f"{NAME}-{name}", 0)
    cluster.scale(space, "StatefulSet", f"{NAME}-redis", 0)
    for name in (*_STATELESS, "redis"):
        until(lambda name=name: not _any_pod(release, name), f"the end of {name}", timeout_s=300)
    for restoring in restore_jobs(release, job):
        cluster.create(space, restoring)
        cluster.wait_job(space, name_of(restoring), timeout_s=_JOB_S)
    cluster.scale(space, "StatefulSet", f"{NAME}-redis", 1)
    for name, count in replicas.items():
        cluster.scale(space, "Deployment", f"{NAME}-{name}", count)
    release.wait_ready()
    with release.loaded(chats=1) as load:
        load.until_more("chats", 1)
        kept = load.check(written)
    row(f"{kept['found']} of {len(written)} memories are back, once each")
    assert (kept["lost"], kept["doubled"]) == ([], [])


def backup_job(release: Release) -> Object:
    """A Job of the CronJob's own template, as ``kubectl create job --from`` makes it."""
    cron = release.cluster.read(release.namespace, "batch/v1", "CronJob", f"{NAME}-backup")
    assert cron is not None
    template = cron["spec"]["jobTemplate"]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "backup-now"}, "spec": template["spec"]}


def restore_jobs(release: Release, backup: Object) -> tuple[Object, Object]:
    """The backup's own pod with another command: Redis's disk is emptied and filled; Qdrant is emptied and filled."""
    redis = _restoring(backup, "restore-redis", ["sh", "-c", _REFILL_REDIS])
    pod = redis["spec"]["template"]["spec"]
    pod["volumes"].append({"name": "redis", "persistentVolumeClaim": {"claimName": f"data-{NAME}-redis-0"}})
    pod["containers"][0]["volumeMounts"].append({"name": "redis", "mountPath": "/redis"})
    qdrant = _restoring(backup, "restore-qdrant", ["python", "/files/restore_qdrant.py"])
    pod = qdrant["spec"]["template"]["spec"]
    pod["volumes"].append({"name": "files", "configMap": {"name": "test-files"}})
    pod["containers"][0]["volumeMounts"].append({"name": "files", "mountPath": "/files"})
    return redis, qdrant


def _restoring(backup: Object, name: str, command: list[str]) -> Object:
    pod = backup["spec"]["template"]["spec"]
    [container] = pod["containers"]
    first = {**container, "command": command, "volumeMounts": [*container["volumeMounts"]]}
    spec = {**pod, "containers": [first], "volumes": [*pod["volumes"]]}
    template = {"metadata": {"labels": backup["spec"]["template"]["metadata"]["labels"]}, "spec": spec}
    job = {"backoffLimit": 0, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job}


def _any_pod(release: Release, component: str) -> bool:
    """Also one that is ending: it still has its disk."""
    query = f"app.kubernetes.io/component={component}"
    found = release.cluster.api.call("GET", f"/api/v1/namespaces/{release.namespace}/pods", labelSelector=query)
    return bool(found["items"])
