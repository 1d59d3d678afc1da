"""The chart installs into a namespace at the restricted level, and its own test passes."""

import re
from collections.abc import Callable

from tests.kubernetes.release import Release


def test_every_pod_becomes_ready(release: Release, row: Callable[[str], None]) -> None:
    components = ("gateway", "worker", "memory-store", "inference", "redis", "qdrant")
    ready = {name: len(release.cluster.ready(release.namespace, name)) for name in components}
    row(", ".join(f"{name} {count}" for name, count in ready.items()))
    assert ready == {"gateway": 2, "worker": 2, "memory-store": 2, "inference": 2, "redis": 1, "qdrant": 1}


def test_helm_test_passes(release: Release, row: Callable[[str], None]) -> None:
    told = release.test()
    print(told)
    row((re.findall(r"^all .*$", told, re.MULTILINE) or ["passed; its log cannot be read"])[-1])
