"""The checks and warnings of ``/readyz``, the same in the API process and in the worker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.memory.memory import Memory
from memloop.wire.chat import Json
from memloop_service import Check, Detail, Warn
from memloop_state.link import CHECK, State, check

OPTIONAL: Final = frozenset({"engine"})
"""Without an engine a process serves memory, files, webhooks and deletions; other jobs wait."""


class Models(Protocol):
    """The models that a process calls."""

    async def check(self) -> None: ...
    async def warning(self) -> str | None: ...
    async def details(self, *, writes: bool) -> Json: ...


class Backend(Protocol):
    """The engines behind the models."""

    @property
    def models(self) -> Models: ...


class Parts(Protocol):
    """The dependencies of a process."""

    @property
    def state(self) -> State: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def backend(self) -> Backend: ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """``parts`` is called at each check: a process opens its slices after its routes are made."""

    parts: Callable[[], Parts]
    writes: bool = False
    """Whether this process runs the memory writes, and so has seen in which forms their writers reply."""

    @property
    def checks(self) -> Mapping[str, Check]:
        """The check of each dependency, by name."""
        return {
            CHECK: lambda: check(self.parts().state),
            "store": lambda: self.parts().memory.store.check(),
            "engine": lambda: self.parts().backend.models.check(),
        }

    @property
    def warnings(self) -> Mapping[str, Warn]:
        """Refused memory writes, what the store warns of, and engines that do not answer."""
        return {
            "memory_writes": lambda: self.parts().memory.failures.warning(),
            "store": lambda: self.parts().memory.store.warning(),
            "models": lambda: self.parts().backend.models.warning(),
        }

    @property
    def details(self) -> Mapping[str, Detail]:
        """How each model is asked."""
        return {"models": lambda: self.parts().backend.models.details(writes=self.writes)}
