"""Each pod is killed in turn while clients write; no acknowledged write is lost or doubled."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.kubernetes.cluster import name_of, until
from tests.kubernetes.release import Release

_WRITERS: Final = 3
_WRITES: Final = 12
"""Acknowledged before a pod dies, and again after it."""


@pytest.mark.parametrize("component", ["redis", "qdrant", "memory-store", "gateway", "worker", "inference"])
def test_a_killed_pod_loses_and_doubles_no_acknowledged_write(
    release: Release, component: str, row: Callable[[str], None]
) -> None:
    cluster, space = release.cluster, release.namespace
    victims = [pod["metadata"]["uid"] for pod in cluster.components(space, component)]
    with release.loaded(writes=_WRITERS) as load:
        for uid in victims:
            load.until_more("acknowledged", _WRITES)
            [name] = [name_of(pod) for pod in cluster.components(space, component) if pod["metadata"]["uid"] == uid]
            cluster.kill(space, name)
            until(lambda uid=uid: _replaced(release, component, uid, len(victims)), f"a new {component}", timeout_s=600)
            load.until_more("acknowledged", _WRITES)
        told = load.stop()
        kept = load.check(told["acknowledged"])
    row(f"{len(victims)} killed; {_figure(told, len(kept['lost']))}")
    assert told["failures"] == []
    assert (kept["lost"], kept["doubled"]) == ([], [])
    assert kept["found"] == len(told["acknowledged"])


def _figure(told: dict[str, Any], lost: int) -> str:
    late = f", {told['queued']} of them queued for up to {told['longest_queued_s']:.0f} s" if told["queued"] else ""
    return f"{len(told['acknowledged'])} acknowledged{late}, {told['repeated']} tries repeated, {lost} lost"


def _replaced(release: Release, component: str, uid: str, wanted: int) -> bool:
    pods = release.cluster.components(release.namespace, component)
    known = {pod["metadata"]["uid"] for pod in pods}
    return uid not in known and len(release.cluster.ready(release.namespace, component)) == wanted
