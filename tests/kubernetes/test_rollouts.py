"""An upgrade and a rollback replace every process and every engine under load, and no request fails."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.kubernetes.cluster import name_of
from tests.kubernetes.release import Release, after_a_change

_REPLACED: Final = ("gateway", "worker", "memory-store", "inference")
_MORE: Final = 50
_CHATTERS: Final = 4
_WRITERS: Final = 2


@pytest.mark.parametrize("way", ["upgrade", "rollback"])
def test_no_request_fails_while_every_pod_is_replaced(release: Release, way: str, row: Callable[[str], None]) -> None:
    changes: dict[str, Callable[[], None]] = {
        "upgrade": lambda: release.upgrade(after_a_change(release.values, "second")),
        "rollback": release.roll_back,
    }
    before = _pods(release)
    with release.loaded(chats=_CHATTERS, writes=_WRITERS) as load:
        load.until_more("chats", _MORE)
        changes[way]()
        load.until_more("chats", _MORE)
        told = load.stop()
        kept = load.check(told["acknowledged"])
    row(_figure(told, kept))
    assert before & _pods(release) == set()
    assert told["failures"] == []
    assert told["repeated"] == 0
    assert (kept["lost"], kept["doubled"]) == ([], [])


def _pods(release: Release) -> set[str]:
    return {name_of(pod) for part in _REPLACED for pod in release.cluster.components(release.namespace, part)}


def _figure(told: dict[str, Any], kept: dict[str, Any]) -> str:
    writes, lost = len(told["acknowledged"]), len(kept["lost"])
    return f"{told['failed']} of {told['chats'] + told['failed']} chats failed; {writes} writes, {lost} lost"
