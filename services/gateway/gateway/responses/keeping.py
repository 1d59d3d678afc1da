"""Keeps one response once it is made: the response itself, and its items in the conversation that it continues."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client import Counter

from gateway.policy import Keeper
from gateway.responses.conversations import Began, ConversationRecords
from gateway.responses.naming import redacted
from gateway.responses.records import Owner, ResponseRecords, StoredResponse
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError, Erased
from memloop_service.http import objects_in

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Continued:
    """The conversation that a response adds its input and output to."""

    records: ConversationRecords
    began: Began


@dataclass(frozen=True, slots=True)
class Keeping:
    """A response that will be kept. ``lost`` counts by reason.

    ``began`` is what ``ResponseRecords.begin`` returned, None for a response that is not stored: it may continue a
    conversation all the same.
    """

    records: ResponseRecords
    owner: Owner
    began: str | None
    input: Sequence[Json]
    previous: str
    lost: Counter
    keeper: Keeper
    conversation: Continued | None = None

    @property
    def stores(self) -> bool:
        """Whether the response can be had again by its id."""
        return self.began is not None

    async def keep(self, response: Json) -> bool:
        """Keep the response, redacted as the user's policies ask; return whether it is kept.

        The answer reaches the client in any case, and unchanged.
        """
        try:
            return await self._kept(response)
        except DependencyError as error:
            _LOG.warning("a response was not kept: %s", error.message)
            self.lost.labels("unavailable").inc()
            return False

    async def keep_queued(self, response: Json) -> None:
        """Keep a response that a worker will make. Raises RateLimited, Erased, Unavailable."""
        response, *given = await redacted([response, *self.input], self.keeper, self.owner.scope)
        stored = StoredResponse(response, tuple(given), self.previous)
        outcome = await self.records.keep(stored, self.owner, self.began or "")
        if outcome == "erased":
            raise Erased
        if outcome == "full":
            raise self.records.over_quota()

    async def _kept(self, response: Json) -> bool:
        response, *given = await redacted([response, *self.input], self.keeper, self.owner.scope)
        if self.conversation is not None:
            items = [*given, *objects_in(response["output"])]
            added = await self.conversation.records.append(self.conversation.began, self.owner, items)
            if added != "added":
                self.lost.labels(added).inc()
        if self.began is None:
            return False
        outcome = await self.records.keep(StoredResponse(response, tuple(given), self.previous), self.owner, self.began)
        if outcome != "kept":
            self.lost.labels(outcome).inc()
        return outcome == "kept"
