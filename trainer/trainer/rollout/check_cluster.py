"""Looks at the Ray cluster that a run would join: whether its nodes can ever hold what verl places there."""

# ray is largely untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from trainer.rollout.placement import Demand, Node
from trainer.rollout.recipe import Composed

_NODES_JOIN_WITHIN_S: Final = 30.0
_QUEUE: Final = ("TransferQueueController", "transfer_queue")
"""The name and namespace of verl's queue: one cluster has one."""


def check_cluster(recipe: Composed, *, join_within_s: float = _NODES_JOIN_WITHIN_S) -> Iterator[str]:
    """Yield every reason why the cluster of ``RAY_ADDRESS`` cannot run the recipe. Takes no resource of it.

    Nodes may still be joining: it waits that long for those that are missing. An autoscaler adds none meanwhile.
    """
    import ray
    from ray.util import list_named_actors

    library: Any = ray
    library.init(log_to_driver=False, logging_level="ERROR")
    try:
        demand = Demand.of(recipe.config)
        if reason := _last(lambda: demand.shortfall(_nodes(library)), join_within_s):
            yield reason
        if _last(lambda: _has_queue(list_named_actors(all_namespaces=True)), join_within_s):
            yield "another run trains on this Ray cluster: verl has one transfer queue for all runs of a cluster"
    finally:
        library.shutdown()


def _last(look: Callable[[], Any], within_s: float) -> Any:
    """Look each second until it finds nothing, or the time is up; return its last finding."""
    deadline = time.monotonic() + within_s
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(1)
    return found


def _nodes(library: Any) -> list[Node]:
    alive = [cast(dict[str, float], each["Resources"]) for each in library.nodes() if each["Alive"]]
    return [Node(each.get("CPU", 0.0), each.get("GPU", 0.0)) for each in alive]


def _has_queue(actors: Any) -> bool:
    return any((each["name"], each["namespace"]) == _QUEUE for each in actors)
