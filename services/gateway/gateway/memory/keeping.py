"""Sorts writes into a policy's categories, and ends them as its retention asks."""

from datetime import UTC, datetime

from gateway.policy import category_of, end_of
from memloop.wire.memory import ItemPatch, MemoryDraft, MemoryItem, StoreAdd
from memloop.wire.policy import EffectivePolicy
from memloop.wire.profile import PINNED, UNSORTED
from memloop.wire.transfer import MemoryLine, NumberedLine


def kept_add(add: StoreAdd, policy: EffectivePolicy) -> StoreAdd:
    """Return the add with a category for each draft, and with the drafts' ends."""
    if not policy.categories and not policy.retention:
        return add
    named = add.metadata.get("category")
    asked = (named,) if isinstance(named, str) else ()
    drafts = tuple(_sorted(draft, policy, asked) for draft in add.drafts)
    now = datetime.now(UTC)
    ends = tuple(end_of(policy, kind=draft.memory_type, tags=draft.tags, made_at=now) for draft in drafts)
    return add.model_copy(update={"drafts": drafts, "ends": ends if any(ends) else ()})


def kept_patch(patch: ItemPatch, item: MemoryItem, policy: EffectivePolicy) -> ItemPatch:
    """Return the edit with an end that is no later than the retention of the edited memory."""
    if not {"expires_at", "tags"} & patch.model_fields_set:
        return patch
    tags = item.tags if patch.tags is None else patch.tags
    last = end_of(policy, kind=item.memory_type, tags=tags, made_at=item.created_at)
    asked = patch.expires_at if "expires_at" in patch.model_fields_set else item.expires_at
    if last is None or (asked is not None and asked <= last):
        return patch
    return patch.model_copy(update={"expires_at": last})


def kept_line(line: NumberedLine, memory: MemoryLine, policy: EffectivePolicy) -> NumberedLine:
    """Return the imported line with an end that is no later than its memory's retention."""
    item = memory.item
    made_at = min(item.created_at, datetime.now(UTC)) if item.created_at.tzinfo else datetime.now(UTC)
    last = end_of(policy, kind=item.memory_type, tags=item.tags, made_at=made_at)
    known = item.expires_at
    if last is None or (known is not None and (known.tzinfo is None or known <= last)):
        return line
    ended = memory.model_copy(update={"item": item.model_copy(update={"expires_at": last})})
    return line.model_copy(update={"text": ended.model_dump_json()})


def _sorted(draft: MemoryDraft, policy: EffectivePolicy, asked: tuple[str, ...]) -> MemoryDraft:
    """Return the draft with its category as the first tag, apart from the pin; without one it counts as unsorted."""
    if not policy.categories or draft.memory_type == "RawTurn":
        return draft
    pins = tuple(tag for tag in draft.tags if tag == PINNED)
    others = tuple(tag for tag in draft.tags if tag != PINNED)
    category = category_of(policy, (*asked, *others))
    if category is None and not others:
        return draft
    rest = (tag for tag in others if tag.casefold() != (category or "").casefold())
    tags = tuple(dict.fromkeys((*pins, category or UNSORTED, *rest)))[:64]
    return draft.model_copy(update={"tags": tags})
