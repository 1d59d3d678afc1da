"""Buffered turns as a search shows them: not decided yet."""

from memloop.wire.errors import Unavailable
from memloop.wire.memory import Buffer, PendingTurn, Scope
from memloop_state.store.buffers import Buffers


async def buffered_turns(buffers: Buffers, scope: Scope) -> tuple[PendingTurn, ...] | None:
    """Return the scope's buffered turns: empty without a user, None while the state cannot be reached."""
    if scope.user_id is None:
        return ()
    try:
        page = await buffers.page(scope.tenant, scope.user_id)
    except Unavailable:
        return None
    return tuple(turn for buffer in page.buffers if _inside(buffer, scope) for turn in _pending(buffer))


def _inside(buffer: Buffer, scope: Scope) -> bool:
    space = buffer.namespace
    return scope.agent_id in (None, space.agent_id) and scope.run_id in (None, space.run_id)


def _pending(buffer: Buffer) -> list[PendingTurn]:
    space = buffer.namespace
    return [
        PendingTurn(
            status="buffered",
            event_id=buffer.event_id,
            role=turn.role,
            content=turn.content,
            timestamp=turn.timestamp or buffer.updated_at,
            user_id=space.user_id,
            agent_id=space.agent_id,
            run_id=space.run_id,
            name=turn.name,
        )
        for turn in buffer.turns
    ]
