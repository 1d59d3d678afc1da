"""Two engine pods share the chats; one that drains gets nothing new, and no chat fails."""

import re
import time
from collections.abc import Callable
from typing import Final

from tests.kubernetes.api import ApiRefused, ApiUnreachable
from tests.kubernetes.cluster import until
from tests.kubernetes.release import Release

_ENGINE_PORT: Final = 7803
_CLIENTS: Final = 4
_CHATS: Final = 80
_SEEN_S: Final = 2.0
_LEAST_SHARE: Final = 0.3


def tokens(release: Release, pod: str) -> float | None:
    """Tokens that an engine has generated, by its own count; None when it does not answer."""
    try:
        told = release.cluster.answer(release.namespace, pod, _ENGINE_PORT, "/metrics")
    except (ApiRefused, ApiUnreachable):
        return None
    return sum(float(value) for value in re.findall(r"^vllm:generation_tokens_total\{.*\} (\S+)$", told, re.MULTILINE))


def test_both_engines_get_their_share(release: Release, row: Callable[[str], None]) -> None:
    pods = release.cluster.ready(release.namespace, "inference")
    with release.loaded(chats=_CLIENTS) as load:
        load.until_more("chats", 10)
        before = {pod: tokens(release, pod) or 0.0 for pod in pods}
        load.until_more("chats", _CHATS)
        shares = {pod: (tokens(release, pod) or 0.0) - before[pod] for pod in pods}
        told = load.stop()
    halves = " and ".join(f"{share:.0f}" for share in shares.values())
    row(f"{halves} tokens; {told['failed']} of {told['chats']} chats failed")
    assert told["failures"] == []
    assert len(shares) == 2
    assert min(shares.values()) >= _LEAST_SHARE * sum(shares.values()) > 0


def test_a_drained_engine_gets_nothing_new_and_costs_no_chat(release: Release, row: Callable[[str], None]) -> None:
    ended = release.cluster.ready(release.namespace, "inference")[0]
    with release.loaded(chats=_CLIENTS) as load:
        load.until_more("chats", 20)
        release.cluster.end(release.namespace, ended)
        time.sleep(_SEEN_S + 1.0)  # the API server's own delay on top
        late = _growth(release, ended)
        until(
            lambda: len(set(release.cluster.ready(release.namespace, "inference")) - {ended}) == 2,
            "another engine",
            timeout_s=900,
        )
        load.until_more("chats", 20)
        told = load.stop()
    row(f"{late:.0f} tokens from {_SEEN_S:.0f} s after its end began; {told['failed']} of {told['chats']} chats failed")
    assert late == 0
    assert told["failures"] == []


def _growth(release: Release, pod: str) -> float:
    """How many tokens an engine generates until it is gone."""
    first = last = tokens(release, pod)
    while (now := tokens(release, pod)) is not None:
        last = now
        time.sleep(0.2)
    return 0.0 if first is None or last is None else last - first
