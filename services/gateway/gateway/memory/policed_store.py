"""Applies the memory policies to every write before it leaves the process: redaction, categories, retention."""

import asyncio
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from pydantic import ValidationError

from gateway.policy import (
    Keeper,
    Redaction,
    Redactions,
    category_of,
    chars_of,
    end_of,
    redacted_metadata,
    redacted_turns,
)
from memloop.chores import computed
from memloop.wire.errors import PreconditionFailed, Unprocessable
from memloop.wire.feedback import MAX_REASON_CHARS, FeedbackRequest
from memloop.wire.fields import aware
from memloop.wire.memory import (
    MAX_TEXT_CHARS,
    BatchOutcome,
    BatchResult,
    Buffer,
    ItemPatch,
    MemoryDraft,
    MemoryItem,
    StoreAdd,
    StoreAddResult,
    StoreBatch,
    repeated_turn,
)
from memloop.wire.memory_requests import PINNED, UNSORTED
from memloop.wire.policy import EffectivePolicy
from memloop.wire.store_requests import Imported, LineError, MemoryLine, NumberedLine, StoreImport
from memloop_clients import Balancing, StoreClient

_KEY_CHARS: Final = 512
_ENDING: Final = frozenset({"expires_at", "tags"})
"""The fields of an edit on which a memory's end depends."""
_TURNS: Final = frozenset({"RawTurn", "KeptTurn"})
"""Their keys are places in their writes and hold no text; a mark in one would part a turn from its pieces."""


def redacted_patch(patch: ItemPatch, redact: Redaction) -> ItemPatch:
    """Return the edit redacted. Raises Unprocessable when its text becomes too long."""
    changed: dict[str, object] = {}
    if patch.memory is not None:
        clean = redact(patch.memory)
        if not clean:
            raise Unprocessable("A memory policy never keeps this text.", param="memory", code="not_kept")
        if len(clean) > MAX_TEXT_CHARS:
            raise Unprocessable(
                f"The text is longer than {MAX_TEXT_CHARS} characters once it is redacted.", param="memory"
            )
        changed["memory"] = clean
    if patch.metadata is not None:
        changed["metadata"] = redacted_metadata(patch.metadata, redact)
    if patch.tags is not None:
        changed["tags"] = _tags(patch.tags, redact)
    return patch.model_copy(update=changed)


def line_of(line: NumberedLine) -> MemoryLine | None:
    """Return the memory of an imported line; None for one that the store will refuse."""
    try:
        return MemoryLine.model_validate_json(line.text)
    except ValidationError:
        return None


def redacted_line(line: NumberedLine, memory: MemoryLine, redact: Redaction) -> NumberedLine:
    """Return the line with its memory redacted; the same line if that changes nothing."""
    before, item, given = redact.counts.total(), memory.item, memory.item.feedback
    sources = redacted_turns(item.sources, redact)
    value = sources[0].said() if repeated_turn(item.memory, item.sources) else redact(item.memory)[:MAX_TEXT_CHARS]
    changed = item.model_copy(
        update={
            "memory": value,
            "key": redact(item.key) or value[:_KEY_CHARS],
            "tags": _tags(item.tags, redact),
            "metadata": redacted_metadata(item.metadata, redact),
            "sources": sources,
            "times": tuple(one.model_copy(update={"text": redact(one.text)[:256]}) for one in item.times),
            "feedback": given and given.model_copy(update={"reason": redacted_reason(given.reason, redact)}),
        }
    )
    if redact.counts.total() == before:
        return line
    return line.model_copy(update={"text": memory.model_copy(update={"item": changed}).model_dump_json()})


def redacted_reason(reason: str | None, redact: Redaction) -> str | None:
    """Return a verdict's reason redacted, cut where marks make it too long."""
    return None if reason is None else redact(reason)[:MAX_REASON_CHARS]


def _tags(tags: Sequence[str], redact: Redaction) -> tuple[str, ...]:
    return tuple(filter(None, map(redact, tags)))


def chars_of_add(add: StoreAdd) -> int:
    """Return how many characters there are to redact in an add."""
    drafts = sum(len(draft.key) + len(draft.value) + sum(map(len, draft.tags)) for draft in add.drafts)
    sources = (*add.sources, *(draft.source for draft in add.drafts if draft.source))
    return drafts + chars_of(sources, add.metadata)


def redacted_buffer(buffer: Buffer, redact: Redaction) -> Buffer:
    """Return the buffer with its turns, reason and metadata redacted."""
    return buffer.model_copy(
        update={
            "turns": redacted_turns(buffer.turns, redact),
            "reason": redact(buffer.reason),
            "metadata": redacted_metadata(buffer.metadata, redact),
        }
    )


def redacted_add(add: StoreAdd, redact: Redaction) -> StoreAdd:
    """Return the add with its drafts, sources and metadata redacted, without drafts of which nothing is left."""
    return add.model_copy(
        update={
            "drafts": tuple(draft for draft in (_redacted(one, redact) for one in add.drafts) if draft.value),
            "sources": redacted_turns(add.sources, redact),
            "metadata": redacted_metadata(add.metadata, redact),
        }
    )


def _redacted(draft: MemoryDraft, redact: Redaction) -> MemoryDraft:
    source = draft.source and redacted_turns((draft.source,), redact)[0]
    key = draft.key if draft.memory_type in _TURNS else redact(draft.key)[:_KEY_CHARS]
    value = source.said() if source else redact(draft.value)[:MAX_TEXT_CHARS]
    changed = {
        "key": key or value[:_KEY_CHARS],
        "value": value,
        "tags": _tags(draft.tags, redact),
        "source": source,
    }
    return draft.model_copy(update=changed)


def policed_add(add: StoreAdd, policy: EffectivePolicy) -> StoreAdd:
    """Return the add with a category for each draft, and with the drafts' ends."""
    if not policy.categories and not policy.retention:
        return add
    named = add.metadata.get("category")
    asked = (named,) if isinstance(named, str) else ()
    drafts = tuple(_sorted(draft, policy, asked) for draft in add.drafts)
    now = datetime.now(UTC)
    ends = tuple(end_of(policy, kind=draft.memory_type, tags=draft.tags, made_at=now) for draft in drafts)
    return add.model_copy(update={"drafts": drafts, "ends": ends if any(ends) else ()})


def policed_patch(patch: ItemPatch, item: MemoryItem, policy: EffectivePolicy) -> ItemPatch:
    """Return the edit with an end that its memory's retention allows.

    An end is extended to the retention's at most, and a category that the edit brings brings its end. A memory from
    before a rule keeps its own: no rule ends one at once.
    """
    if not _ENDING & patch.model_fields_set:
        return patch
    tags = item.tags if patch.tags is None else patch.tags
    was, last = (
        end_of(policy, kind=item.memory_type, tags=each, made_at=item.created_at) for each in (item.tags, tags)
    )
    known = item.expires_at
    asked = patch.expires_at if "expires_at" in patch.model_fields_set else known
    asked = asked and aware(asked)
    limits = list[datetime]()
    if last is not None and known is not None:
        limits.append(max(last, known))
    if last is not None and last != was and last > datetime.now(UTC):
        limits.append(last)
    most = min(limits, default=None)
    if most is None or (asked is not None and asked <= most):
        return patch
    return patch.model_copy(update={"expires_at": most})


def policed_line(line: NumberedLine, memory: MemoryLine, policy: EffectivePolicy) -> NumberedLine | LineError:
    """Return the imported line with an end that is no later than its memory's retention, from its last statement on.

    One that has expired by then is an error.
    """
    item = memory.item
    created_at = item.created_at if item.created_at.tzinfo else datetime.now(UTC)
    made_at = min(max(created_at, memory.confirmed_at), datetime.now(UTC))
    last = end_of(policy, kind=item.memory_type, tags=item.tags, made_at=made_at)
    known = item.expires_at
    if known is not None and known.tzinfo is None:
        return line  # the store refuses it
    end = min(filter(None, (last, known)), default=None)
    if end is not None and end <= datetime.now(UTC):
        return LineError(line=line.number, message=f"the memory expired at {end.isoformat()}")
    if end == known:
        return line
    ended = memory.model_copy(update={"item": item.model_copy(update={"expires_at": end})})
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


class PolicedStore(StoreClient):
    """A client of the store that applies the memory policies to every write. Raises Unavailable without them."""

    def __init__(
        self, base_url: str, *, key: str | None, balancing: Balancing, keeper: Keeper, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(base_url, key=key, balancing=balancing, tls=tls)
        self._keeper = keeper

    async def add(self, request: StoreAdd) -> StoreAddResult:
        """See ``StoreClient``."""
        [add] = await self._rewritten((request,))
        return await super().add(add) if add.drafts else StoreAddResult(results=())

    async def add_redacted(self, request: StoreAdd, redactions: Redactions) -> StoreAddResult:
        """Store an add of a text that was redacted by the namespace's redactions, with the categories and ends."""
        return await super().add(policed_add(request, redactions.policy(request.namespace)))

    async def add_batch(self, request: StoreBatch) -> BatchResult:
        """See ``StoreClient``."""
        adds = await self._rewritten(request.adds)
        some = tuple(add for add in adds if add.drafts)
        if not some:
            return BatchResult(results=(BatchOutcome(),) * len(adds))
        outcomes = iter((await super().add_batch(request.model_copy(update={"adds": some}))).results)
        return BatchResult(results=tuple(next(outcomes) if add.drafts else BatchOutcome() for add in adds))

    async def patch(self, item_id: str, patch: ItemPatch, *, tenant: str, if_version: int | None = None) -> MemoryItem:
        """See ``StoreClient``. The memory is read first: its user's policy applies.

        An end that follows from the memory as it was read is stored only while it is as it was, else made again.
        Raises Unprocessable for an end that has passed: nothing brings back what has expired.
        """
        item = await self.item(item_id, tenant=tenant)
        if patch.expires_at is not None and aware(patch.expires_at) <= datetime.now(UTC):
            raise Unprocessable("This time has passed. To remove the memory, delete it.", param="expires_at")
        scope = item.namespace(tenant)
        redactions = await self._keeper.redactions(tenant, [scope])
        patch, policy = redactions.applied(scope, partial(redacted_patch, patch), patch), redactions.policy(scope)
        ends = bool(policy.retention and _ENDING & patch.model_fields_set)
        while True:
            version = item.version if ends and if_version is None else if_version
            try:
                ended = policed_patch(patch, item, policy)
                return await super().patch(item_id, ended, tenant=tenant, if_version=version)
            except PreconditionFailed:
                if version == if_version:
                    raise
            item = await self.item(item_id, tenant=tenant)

    async def feedback(self, item_id: str, request: FeedbackRequest, *, tenant: str) -> MemoryItem:
        """See ``StoreClient``. A reason is redacted by the policy of the memory's user, so the memory is read first."""
        if request.reason is not None:
            scope = (await self.item(item_id, tenant=tenant)).namespace(tenant)
            redactions = await self._keeper.redactions(tenant, [scope])
            reason = redactions.applied(scope, partial(redacted_reason, request.reason), request.reason)
            request = request.model_copy(update={"reason": reason})
        return await super().feedback(item_id, request, tenant=tenant)

    async def take(self, request: StoreImport) -> Imported:
        """See ``StoreClient``. A line that is no memory is sent as it is, because the store refuses it.

        A line whose memory has expired, by itself or by its retention, is refused here: it would be gone at once.
        """
        known, tenant = [(line, line_of(line)) for line in request.lines], request.tenant
        scopes = [memory.item.namespace(tenant) for _, memory in known if memory is not None]
        redactions = await self._keeper.redactions(tenant, scopes)

        def rewritten(line: NumberedLine, memory: MemoryLine | None) -> NumberedLine | LineError:
            if memory is None:
                return line
            scope = memory.item.namespace(tenant)
            clean = redactions.applied(scope, partial(redacted_line, line, memory), line)
            known = memory if clean is line else line_of(clean)
            return clean if known is None else policed_line(clean, known, redactions.policy(scope))

        lines = await asyncio.to_thread(lambda: tuple(rewritten(*one) for one in known))
        kept = tuple(line for line in lines if isinstance(line, NumberedLine))
        over = tuple(line for line in lines if isinstance(line, LineError))
        taken = await super().take(request.model_copy(update={"lines": kept})) if kept else Imported()
        errors = sorted((*over, *taken.errors), key=lambda error: error.line)
        return taken.model_copy(update={"failed": taken.failed + len(over), "errors": tuple(errors)})

    async def put_buffer(self, buffer: Buffer, *, fencing_token: int | None = None) -> Buffer:
        """See ``StoreClient``."""
        redactions = await self._keeper.redactions(buffer.namespace.tenant, [buffer.namespace])
        kept = redactions.applied(buffer.namespace, partial(redacted_buffer, buffer), buffer)
        return await super().put_buffer(kept, fencing_token=fencing_token)

    async def _rewritten(self, adds: tuple[StoreAdd, ...]) -> tuple[StoreAdd, ...]:
        """Return adds of one tenant as its policies allow; one of which nothing is left has no drafts."""
        redactions = await self._keeper.redactions(adds[0].namespace.tenant, [add.namespace for add in adds])

        def rewritten() -> tuple[StoreAdd, ...]:
            clean = (redactions.applied(add.namespace, partial(redacted_add, add), add) for add in adds)
            return tuple(policed_add(add, redactions.policy(add.namespace)) for add in clean)

        return await computed(rewritten, chars=sum(map(chars_of_add, adds)))
