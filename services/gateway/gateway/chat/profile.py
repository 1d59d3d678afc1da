"""A user's profile: pinned and newest facts within a token budget, read from the store without a language model.

It is read when it is asked for, so it holds every write that has ended.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final, TypeVar

from fastapi import APIRouter, Query
from pydantic import JsonValue

from gateway.access import NamespaceDep, Room, needs
from gateway.chat.chat import ChatDep
from memloop.ports import Splitter
from memloop.wire.memory import MemoryItem, Namespace
from memloop.wire.memory_requests import PINNED, UNSORTED, ProfileCategory, ProfileFact, UserProfile
from memloop.wire.store_requests import StoreList
from memloop_clients import StoreClient
from memloop_service import ERRORS

MOST_FACTS: Final = 200
_MOST_PINNED: Final = 100
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Facts:
    """A user's facts, pinned ones first, then the newest; ``total`` counts all that are stored."""

    items: Sequence[MemoryItem]
    total: int


async def facts_of(store: StoreClient, namespace: Namespace, *, category: str | None = None) -> Facts:
    """Read the user's pinned and newest facts, of one category or of all. Raises the store's errors."""
    within: list[JsonValue] = [] if category is None else [{"tags": {"in": [category]}}]
    pins: list[JsonValue] = [*within, {"tags": {"in": [PINNED]}}]
    pinned, newest = await asyncio.gather(
        store.listing(StoreList(scope=namespace, filters={"AND": pins}, limit=_MOST_PINNED)),
        store.listing(StoreList(scope=namespace, filters={"AND": within} if within else None, limit=MOST_FACTS)),
    )
    items = {item.id: item for item in (*pinned.items, *newest.items)}
    facts = (  # no turns without a decision, and nothing that a client called wrong or outdated
        item
        for item in items.values()
        if item.memory_type != "KeptTurn" and (item.feedback is None or item.feedback.verdict == "helpful")
    )
    return Facts(tuple(islice(facts, MOST_FACTS)), newest.total)


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


def fitting(items: Iterable[_Item], cost: Callable[[_Item], int], *, max_tokens: int) -> tuple[list[_Item], int]:
    """Return the items that fit, in order, and their tokens. One that does not is skipped; a later one may fit."""
    shown: list[_Item] = []
    tokens = 0
    for item in items:
        if tokens + (one := cost(item)) <= max_tokens:
            shown.append(item)
            tokens += one
    return shown, tokens


def category_of(item: MemoryItem) -> str:
    """Return the memory's first tag, apart from the pin."""
    return next((tag for tag in item.tags if tag != PINNED), UNSORTED)


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
