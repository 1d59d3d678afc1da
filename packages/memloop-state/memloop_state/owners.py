"""Names the users whose data a record holds, and orders what is stored against their erasures.

A record of a user has an entry in the user's *index*, made in the step that stores it. The same step compares the
user's *marks*: the fencing token of the last erasure of each scope. Work notes the newest token when it begins, so a
record whose work began before an erasure is refused after it, and one that was stored before it is found in the index.
Every partition has marks and indexes of its own: a record is in the same slot as they are, wherever it lies.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from memloop.wire.memory import Namespace, Scope
from memloop_state.link import State, sent
from memloop_state.steps import Partitions, Steps, digest

FROM_NOW: Final = 2**53
"""What work began with that is done in one step: no erasure came before it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A user's namespace whose data a record holds, and the newest fencing token when the work on it began."""

    namespace: Namespace
    began: int


def owned_terms(owners: Sequence[Owner], *, kind: str, record_id: str) -> list[Mapping[str, object]]:
    """Return the terms of each owner; without a ``kind`` the record is compared and not noted."""
    terms: list[Mapping[str, object]] = []
    for owner in owners:
        one = owner.namespace
        known = {"tenant": one.tenant, "user": one.user_id, "lane": digest(one.lane()), "scopes": one.scopes()}
        entry = orjson.dumps([kind, record_id, one.agent_id, one.run_id]).decode()
        terms.append({**known, "began": owner.began} | ({"entry": entry} if kind else {}))
    return terms


class Owners:
    """The owners in one Redis. Methods raise Unavailable when it is unreachable."""

    def __init__(self, redis: State) -> None:
        self._redis: Any = redis
        self._partitions = Partitions(redis)
        self._step = Steps(redis, "owners")

    async def mark(self, namespace: Namespace, token: int) -> None:
        """Note an erasure everywhere: from now on no record is stored whose work began before its token."""
        args = [namespace.scopes()[-1], token]
        marks = [part.hidden("erased", namespace.lane()) for part in self._partitions.partitions]
        await asyncio.gather(*(self._step("mark", [one], args, acknowledged=True) for one in marks))

    async def records(self, namespace: Namespace) -> list[tuple[str, str]]:
        """Return kind and id of all records of the namespace."""
        found: list[tuple[str, str]] = []
        for part in self._partitions.partitions:
            entries: list[str] = await sent(self._redis, "HVALS", part.hidden("owned", namespace.lane()))
            for entry in filter(None, "".join(entries).split("\n")):
                kind, record_id, agent, run = orjson.loads(entry)
                if namespace.agent_id in (None, agent) and namespace.run_id in (None, run):
                    found.append((kind, record_id))
        return list(dict.fromkeys(found))

    async def leave(self, namespace: Namespace) -> None:
        """Forget the user's name wherever no record of the user is left."""
        for part in self._partitions.partitions:
            keys = [part.hidden("owned", namespace.lane()), part.key("owners", namespace.tenant)]
            await self._step("leave", keys, [namespace.user_id])

    async def users(self, scope: Scope) -> list[str]:
        """Return the users of the tenant with records of the scope's agent and run, each once."""
        found: dict[str, None] = {}
        for part in self._partitions.partitions:
            found |= dict.fromkeys(await self._step.rows("listed", [part.key("owners", scope.tenant)], []))
        if scope.agent_id is None and scope.run_id is None:
            return list(found)
        spaces = [Namespace(**scope.model_dump() | {"user_id": user}) for user in found]
        return [one.user_id for one in spaces if await self.records(one)]
