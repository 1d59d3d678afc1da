"""Query parameters that name a user, an agent and a run, and the caller's namespace of the three."""

from typing import Annotated, TypeAlias

from fastapi import Depends, Query

from gateway.access.dependencies import PrincipalDep
from memloop.wire.memory import Namespace
from memloop.wire.names import Name

QueryId: TypeAlias = Annotated[Name, Query()]
OptionalId: TypeAlias = Annotated[Name | None, Query()]


async def _namespace_of(
    principal: PrincipalDep, user_id: QueryId, agent_id: OptionalId = None, run_id: OptionalId = None
) -> Namespace:
    return Namespace(tenant=principal.tenant, user_id=user_id, agent_id=agent_id, run_id=run_id)


NamespaceDep: TypeAlias = Annotated[Namespace, Depends(_namespace_of)]
"""The namespace that the query names."""
