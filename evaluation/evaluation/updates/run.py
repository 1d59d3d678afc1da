"""Runs cases through the store's own routes and the relate loop: the old facts, then the new one, then a look."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from evaluation.updates.cases import Case
from memloop.loops.relating import relate
from memloop.loops.results import AddMemories, DecisionResult
from memloop.ports import ChatModel
from memloop.profiles import Profile
from memloop.wire.memory import MemoryDraft, Namespace, StoreAdd, Usage
from memloop_clients.store import NamespaceIndex, StoreClient

_THEN = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Outcome:
    """``replaced``: the target's old text is no longer live. ``lost``: the number of other facts that are not."""

    case: Case
    replaced: bool
    lost: int
    calls: int

    @property
    def right(self) -> bool:
        """Whether the case ended as its kind wants."""
        return self.lost == 0 and self.replaced == (self.case.kind == "changed")


class ModelOfCase(Protocol):
    """Gives the model that relates the facts of a case."""

    def __call__(self, case: Case) -> ChatModel:
        """Return the model."""
        ...


async def run(cases: Sequence[Case], *, store: StoreClient, model_of: ModelOfCase, profile: Profile) -> list[Outcome]:
    """Run each case in a namespace of its own. Raises the errors of store and model."""
    return [await _outcome(case, store, model_of(case), profile) for case in cases]


async def _outcome(case: Case, store: StoreClient, model: ChatModel, profile: Profile) -> Outcome:
    namespace = Namespace(tenant="updates", user_id=case.name)
    await store.add(_add(namespace, case.stored, day=0))
    decided = DecisionResult(AddMemories((case.new,), ""), (), Usage())
    near = await NamespaceIndex(store, namespace).near(decided.decision.drafts)
    related = await relate(decided, near, model=model, profile=profile)
    await store.add(_add(namespace, related.decision.drafts, day=1))
    live = {item.memory for item in (await store.items(namespace, limit=500)).items}
    old = [draft.value for draft in case.stored]
    target = old[case.target] if case.target is not None else None
    lost = sum(text not in live for text in old if text != target)
    return Outcome(case, target is not None and target not in live, lost, related.usage.llm_calls)


def _add(namespace: Namespace, drafts: tuple[MemoryDraft, ...], *, day: int) -> StoreAdd:
    return StoreAdd(namespace=namespace, drafts=drafts, timestamp=_THEN + timedelta(days=day))
