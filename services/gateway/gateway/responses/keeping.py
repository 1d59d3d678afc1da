"""Keeps responses once they are made: each itself, and its items in the conversation that it continues."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from prometheus_client import Counter

from gateway.memory import Memory
from gateway.policy import Keeper, Redactions
from gateway.responses.conversations.records import ConversationRecords
from gateway.responses.items import named_items, redacted, redacted_by
from gateway.responses.records import ResponseRecords, StoredResponse
from gateway.responses.requests import Asked, ResponseRequest
from gateway.settings import GatewaySettings
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError, Erased, InvalidRequest
from memloop.wire.memory import Namespace, Scope
from memloop_service.http import json_text, objects_in
from memloop_state.steps import Guard
from memloop_state.table import Outcome

_LOG = logging.getLogger(__name__)


_STATE: Final = ("previous_response_id", "conversation", "memory", "background")
_USERS: Final = ("user", "safety_identifier", "metadata")


@dataclass(frozen=True, slots=True)
class Responses:
    """Stored responses; ``lost`` counts by reason."""

    settings: GatewaySettings
    records: ResponseRecords
    conversations: ConversationRecords
    lost: Counter

    def count_lost(self, outcome: Outcome) -> None:
        """Count a response that was not kept, or whose conversation did not get its items."""
        if outcome != "kept":
            self.lost.labels("long" if outcome == "rows" else outcome).inc()

    def passes(self, fields: Json, *, names_user: bool) -> bool:
        """Return whether the engine answers the request itself: one without memory and without state.

        ``names_user``: its headers name a user.
        """
        if not self.settings.engine_responses or fields.get("store") is not False or names_user:
            return False
        tools = fields.get("tools")
        if any(tool.get("type") == "file_search" for tool in objects_in(tools)):
            return False
        names = (*_STATE, *_USERS) if self.settings.memory_for_users else _STATE
        return all(fields.get(name) in (None, False) for name in names)


@dataclass(frozen=True, slots=True)
class Keeping:
    """A response that will be kept.

    ``began`` is the newest fencing token then, 0 without a user. A response that is not stored, and so cannot be had
    again by its id, may continue a conversation all the same.
    """

    responses: Responses
    request: ResponseRequest
    response_id: str
    scope: Scope
    began: int
    input: Sequence[Json]
    keeper: Keeper

    async def keep(self, response: Json) -> bool:
        """Keep the response, redacted as the user's policies ask; return whether it is kept.

        It is redacted by the policies that were seen last, if the write can check them, else by the present ones: a
        conversation's write checks none. The answer reaches the client in any case, and unchanged.
        """
        checks = self.request.stores and self.request.conversation_id is None
        seen = self.keeper.seen(self.scope) if checks else None
        try:
            outcome = "stale" if seen is None else await self._kept_by(*seen, response)
            if outcome == "stale":
                redactions = await self.keeper.redactions(self.scope.tenant, [self.scope])
                outcome = await self._kept_by(redactions, None, response)
        except DependencyError as error:
            _LOG.warning("a response was not kept: %s", error.message)
            self.responses.lost.labels("unavailable").inc()
            return False
        if outcome is not None:
            self.responses.count_lost(outcome)
        return outcome == "kept"

    async def give_up(self) -> None:
        """Give back the response's part of the quota: it will not be kept."""
        if self.request.stores:
            with suppress(DependencyError):
                await self.responses.records.give_back(self.scope.tenant, self.response_id)

    async def keep_queued(self, response: Json) -> None:
        """Keep a response that a worker will make. Raises RateLimited, Erased, Unavailable."""
        response, *given = await redacted([response, *self.input], self.keeper, self.scope)
        stored = StoredResponse(response, tuple(given), self.request.previous_response_id or "")
        outcome = await self.responses.records.keep(stored, self.scope, self.began)
        if outcome == "erased":
            raise Erased
        if outcome == "full":
            raise self.responses.records.over_quota()

    async def _kept_by(self, redactions: Redactions, guard: Guard | None, response: Json) -> Outcome | None:
        """Return what became of the response; None for one that only its conversation gets."""
        (shown, *given), redact = await redacted_by(redactions, [response, *self.input], self.scope)
        if (conversation := self.request.conversation_id) is not None:
            items = [*given, *objects_in(shown["output"])]
            added = await self.responses.conversations.append(conversation, self.scope, self.began, items)
            self.responses.count_lost(added)
        outcome = None
        if self.request.stores:
            stored = StoredResponse(shown, tuple(given), self.request.previous_response_id or "")
            outcome = await self.responses.records.keep(stored, self.scope, self.began, guard=guard)
        if outcome != "stale":
            redactions.counted(redact)
        return outcome


async def keeping_of(
    asked: Asked,
    responses: Responses,
    scope: Scope,
    head: Json,
    *,
    earlier: Sequence[Json],
    memory: Memory,
) -> Keeping | None:
    """Return where the response that begins with ``head`` is kept, None for nowhere.

    Raises RateLimited, InvalidRequest and NotFound when there is no room for it, Unavailable.
    """
    request, response_id = asked.request, str(head["id"])
    size = len(json_text({"response": head}))  # what can be read may be nested too deeply to be written
    if not request.stores and request.conversation_id is None:
        return None
    items = named_items(asked.items, response_id.removeprefix("resp_"))
    ids = [item["id"] for item in (*earlier, *items)] if request.conversation_id is not None else []
    if len(set(map(str, ids))) < len(ids):
        raise InvalidRequest("The conversation already has an item of this id.", param="input", code="duplicate_item")
    size += len(json_text(items))
    began = await memory.queue.lanes.newest_token() if isinstance(scope, Namespace) else 0
    if request.conversation_id is not None:
        await responses.conversations.begin(scope.tenant, request.conversation_id, new=len(items), size=size)
    if request.stores:
        await responses.records.begin(scope.tenant, response_id, size=size)
    return Keeping(responses, request, response_id, scope, began, items, memory.keeper)
