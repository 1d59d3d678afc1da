"""Keeps responses: each with its own input and output, and the id of the one that it continues.

They expire ``keep_s`` after they were made or last continued. An erased user's responses are deleted, and a response
that began before the erasure is not kept after it. One that is being made holds its part of the quota meanwhile.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from gateway.settings import GatewaySettings
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, NotFound, RateLimited
from memloop.wire.memory import Namespace, Scope
from memloop_state.link import State
from memloop_state.owners import Owner
from memloop_state.room import Room
from memloop_state.steps import Guard, id_at
from memloop_state.table import Outcome, Table

KIND: Final = "responses"
"""What responses are among the records of their owners."""
_MAKING_S: Final = 60 * 60.0
"""Longer than a response is made for."""
_ID: Final = re.compile(r"resp_[0-9a-f]{32}")
_BYTES_BESIDE: Final = 512
"""What a record takes in memory beside its texts."""
_TEXTS: Final[Sequence[str]] = ("previous", "input", "response")


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response with the items of its own input, each with an id. ``previous`` is the one that it continues."""

    response: Json
    input: tuple[Json, ...]
    previous: str = ""

    @property
    def id(self) -> str:
        """The response's id."""
        return str(self.response["id"])


def owners_of(scope: Scope, began: int) -> tuple[Owner, ...]:
    """Return the user, if the scope has one, whose erasure deletes a record; its work began with that token."""
    return (Owner(scope, began),) if isinstance(scope, Namespace) else ()


class ResponseRecords:
    """Every tenant's responses. Methods raise Unavailable."""

    def __init__(self, state: State, settings: GatewaySettings) -> None:
        self._tenant_bytes, self._chain = settings.tenant_response_bytes, settings.response_chain
        keep_s = settings.response_keep_s
        self._table = Table(state, "response", kind=KIND, keep_s=keep_s, most_bytes=self._tenant_bytes)
        self._room = Room(state, share=settings.redis_full_share)

    async def begin(self, tenant: str, response_id: str, *, size: int) -> None:
        """Take ``size`` bytes out of the quota for a response that is being made.

        The bytes return with ``keep``, with ``give_back``, or when the process has died, after an hour. Raises
        RateLimited when the tenant's quota has no room for them, Unavailable while the state's memory is nearly full.
        """
        await self._room.check()
        if await self._table.reserve(tenant, response_id, size=size + _BYTES_BESIDE, lease_s=_MAKING_S) == "full":
            raise self.over_quota()

    async def give_back(self, tenant: str, response_id: str) -> None:
        """Give back the bytes of a response that was begun and will not be kept; no effect on one that was kept."""
        await self._table.release(tenant, response_id)

    async def keep(self, stored: StoredResponse, scope: Scope, began: int, *, guard: Guard | None = None) -> Outcome:
        """Keep the response of a user or of a tenant, unless it does not fit, or its user was erased since ``began``.

        With ``guard`` it is ``stale``, and not kept, if the policies have changed by which it was redacted.
        """
        texts = (stored.previous.encode(), orjson.dumps(stored.input), orjson.dumps(stored.response))
        size = _BYTES_BESIDE + sum(map(len, texts))
        fields: dict[str, bytes] = dict(zip(_TEXTS, texts, strict=True))
        owners = owners_of(scope, began)
        return await self._table.put(scope.tenant, stored.id, fields, size=size, owners=owners, guard=guard)

    async def end(self, tenant: str, response: Json, *, anyway: bool = False) -> Outcome:
        """Put the end of a response in the place of the one that was queued; ``anyway`` also over the quota.

        Returns changed, full or gone.
        """
        fields = {"response": orjson.dumps(response)}
        return await self._table.change(tenant, str(response["id"]), fields, counted=True, anyway=anyway)

    def over_quota(self) -> RateLimited:
        """Return the error of a response for which the tenant has no room."""
        return RateLimited(
            f"This tenant's stored responses may hold {self._tenant_bytes} bytes, and this one does not fit. "
            "Delete some, or send store: false.",
            param="store",
            code="response_quota_exceeded",
            retry_after_s=60.0,
        )

    async def get(self, tenant: str, response_id: str) -> StoredResponse:
        """Return the response. Raises NotFound when the tenant has no such response."""
        found = await self._table.get(tenant, response_id) if _ID.fullmatch(response_id) else None
        if found is None:
            raise _missing()
        return _stored(found)

    async def chain(self, tenant: str, response_id: str, *, max_bytes: int) -> list[StoredResponse]:
        """Return the response and all that it continues, oldest first, and keep them for longer.

        Raises InvalidRequest when one of them is not there, or they are too many or too long.
        """
        found: list[StoredResponse] = []
        wanted, size = response_id, 0
        while wanted or not found:
            if len(found) == self._chain:
                message = f"A response may continue at most {self._chain} others."
                raise InvalidRequest(message, param="previous_response_id", code="response_chain_too_long")
            texts = await self._table.renew(tenant, wanted, _TEXTS) if _ID.fullmatch(wanted) else []
            if not texts:
                message = "The previous response, or one that it continues, was not found."
                raise InvalidRequest(message, param="previous_response_id", code="previous_response_not_found")
            size += len(texts[1]) + len(texts[2])
            if size > max_bytes:
                message = f"The responses that this one continues hold more than {max_bytes} bytes."
                raise InvalidRequest(message, param="previous_response_id", code="response_chain_too_long")
            found.append(_stored(dict(zip(_TEXTS, texts, strict=True))))
            wanted = texts[0]
        return found[::-1]

    async def delete(self, tenant: str, response_id: str) -> None:
        """Delete the response. Raises NotFound."""
        if not _ID.fullmatch(response_id) or await self._table.delete(tenant, response_id) == "gone":
            raise _missing()


def new_response_id(tenant: str, digits: str = "") -> str:
    """Return the id of a tenant's response: 30 of these 32 hex digits, by default random, at the tenant's place."""
    return id_at("resp_", tenant, digits or secrets.token_hex(16))


def _missing() -> NotFound:
    return NotFound("Response not found.", param="response_id")


def _stored(fields: Mapping[str, str]) -> StoredResponse:
    return StoredResponse(orjson.loads(fields["response"]), tuple(orjson.loads(fields["input"])), fields["previous"])
