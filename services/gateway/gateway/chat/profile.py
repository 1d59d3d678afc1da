"""A user's profile: pinned and newest facts within a token budget, read from the store without a language model.

It is read when it is asked for, so it holds every write that has ended.
"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from gateway.access import NamespaceDep, Room, needs
from gateway.chat.chat import ChatDep
from gateway.chat.recall import Facts, category_of, facts_of, fitting
from memloop.ports import Splitter
from memloop.wire.memory import Namespace
from memloop.wire.memory_requests import PINNED, ProfileCategory, ProfileFact, UserProfile
from memloop_service import ERRORS


def profile_of(facts: Facts, namespace: Namespace, splitter: Splitter, *, max_tokens: int) -> UserProfile:
    """Group the facts that fit."""
    shown, tokens = fitting(facts.items, lambda item: splitter.count(item.memory), max_tokens=max_tokens)
    groups: dict[str, list[ProfileFact]] = {}
    for item in shown:
        groups.setdefault(category_of(item), []).append(
            ProfileFact(id=item.id, memory=item.memory, pinned=PINNED in item.tags, valid_from=item.valid_from)
        )
    return UserProfile(
        user_id=namespace.user_id,
        agent_id=namespace.agent_id,
        run_id=namespace.run_id,
        categories=tuple(ProfileCategory(name=name, facts=tuple(facts)) for name, facts in groups.items()),
        tokens=tokens,
        left_out=max(facts.total, len(facts.items)) - len(shown),
    )


router = APIRouter(tags=["memory"], responses=ERRORS)


@router.get("/v1/memory/profile", dependencies=[needs("memory:read"), Room])
async def read_profile(
    chat: ChatDep,
    namespace: NamespaceDep,
    max_tokens: Annotated[int, Query(ge=1, le=32_768)] = 1500,
    category: Annotated[str | None, Query(min_length=1, max_length=64)] = None,
) -> UserProfile:
    """Return a user's facts by category, pinned and newest first, within a budget of the chat model's tokens.

    With ``category`` only the facts that have it among their tags.
    """
    facts, splitter = await facts_of(chat.memory.store, namespace, category=category), chat.backend.models.counting
    return await asyncio.to_thread(profile_of, facts, namespace, splitter, max_tokens=max_tokens)
