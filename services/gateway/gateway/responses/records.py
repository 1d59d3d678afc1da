"""Keeps responses in Redis: each with its own input and output, and the id of the one that it continues.

A tenant's responses share a tag with the count of their bytes, so that one step checks the quota and keeps a response.
They expire ``keep_s`` after they were made or last continued. An erased user's responses are deleted, and a response
that began before the erasure is not kept after it. One that is being made holds its part of the quota meanwhile.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import orjson
from redis.asyncio import Redis

from gateway.responses.key_names import Keys, placed_response_id
from gateway.responses.scripts import CONTINUE, DELETE, END, GIVE_BACK, KEEP, ROOM
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, NotFound, RateLimited
from memloop.wire.memory import Namespace, Scope
from memloop_state import owners
from memloop_state.guard import UNGUARDED, Guard
from memloop_state.link import redis_errors
from memloop_state.owners import owned_args, owned_keys
from memloop_state.room import RedisRoom
from memloop_state.scripts import Script, text

Outcome: TypeAlias = Literal["kept", "full", "erased", "changed"]
KIND: Final = "responses"
"""What responses are among the records of their owners."""
_MAKING_MS: Final = 60 * 60 * 1000
"""Longer than a response is made for."""
_ID: Final = re.compile(r"resp_[0-9a-f]{32}")
_BYTES_BESIDE: Final = 512
"""What a record takes in Redis beside its texts."""


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


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose response it is: the tenant, and the user whose erasure deletes it, if the request named one."""

    tenant: str
    namespace: Namespace | None

    @property
    def lane(self) -> str:
        """The user's lane, or the tenant's where there is no user."""
        return self.namespace.lane() if self.namespace is not None else f"{self.tenant}/"

    @property
    def noted(self) -> tuple[owners.Owner, ...]:
        """The owner, as records are noted by it. What it ``began`` with are its erasures so far, not a token."""
        return () if self.namespace is None else (owners.Owner(self.namespace, 0),)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes whose erasure covers the response."""
        return self.namespace.scopes() if self.namespace is not None else ()

    @property
    def scope(self) -> Scope:
        """Whose policies apply."""
        return self.namespace or Scope(tenant=self.tenant)


class ResponseRecords:
    """Every tenant's responses. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis, room: RedisRoom, *, keep_s: float, tenant_bytes: int, chain: int) -> None:
        """``chain`` is the most responses that one may continue, with ``tenant_bytes`` for all of a tenant."""
        self._redis = redis
        self._redis_room = room
        self._keys = Keys(redis)
        self._keep_ms = int(keep_s * 1000)
        self._tenant_bytes = tenant_bytes
        self._chain = chain
        self._room = Script(redis, ROOM)
        self._give_back = Script(redis, GIVE_BACK)
        self._keep = Script(redis, KEEP, acknowledged=True)
        self._continue = Script(redis, CONTINUE)
        self._delete = Script(redis, DELETE, acknowledged=True)
        self._end = Script(redis, END, acknowledged=True)

    async def begin(self, response_id: str, owner: Owner, *, size: int) -> str:
        """Take ``size`` bytes out of the quota for a response that is being made; return the user's erasures so far.

        The bytes return with ``keep``, with ``give_back``, or when the process has died, after an hour. Raises
        RateLimited when the tenant's quota has no room for them, Unavailable while Redis is nearly full.
        """
        await self._redis_room.check()
        keys = [self._keys.of_name(owner.tenant).erased(owner.lane), *self._counted(owner.tenant)]
        args = [response_id, size + _BYTES_BESIDE, self._tenant_bytes, _MAKING_MS, *owner.scopes]
        outcome, *erasures = await self._room.rows(keys, args)
        if outcome == "full":
            raise self.over_quota()
        return erasures[0]

    async def give_back(self, tenant: str, response_id: str) -> None:
        """Give back the bytes of a response that was begun and will not be kept; no effect on one that was kept."""
        keys = [self._keys.of_name(tenant).response(tenant, response_id), *self._counted(tenant)]
        await self._give_back(keys, [response_id])

    async def keep(self, stored: StoredResponse, owner: Owner, began: str, *, guard: Guard | None = None) -> Outcome:
        """Keep the response, unless it does not fit in the quota or its user was erased since ``began``.

        With ``guard`` it is not kept either if the policies have ``changed`` by which it was redacted.
        """
        tenant, part = owner.tenant, self._keys.of_name(owner.tenant)
        scopes = owner.scopes
        fields = {
            "previous": stored.previous.encode(),
            "input": orjson.dumps(stored.input),
            "response": orjson.dumps(stored.response),
        }
        size = _BYTES_BESIDE + sum(map(len, fields.values()))
        guarding = guard.args if guard is not None else UNGUARDED
        owned = owned_args(owner.noted, kind=KIND, record_id=stored.id)
        args = [stored.id, self._keep_ms, size, self._tenant_bytes, began, *owned, *guarding, len(scopes), *scopes]
        keys = [part.erased(owner.lane), *self._counted(tenant), part.response(tenant, stored.id)]
        pairs = [part for pair in fields.items() for part in pair]
        guarded = [guard.key] if guard is not None else []
        return cast(Outcome, await self._keep([*keys, *owned_keys(part, owner.noted), *guarded], [*args, *pairs]))

    async def end(self, tenant: str, response: Json, *, anyway: bool = False) -> Literal["ended", "full", "gone"]:
        """Put the end of a response in the place of the one that was queued; ``anyway`` also over the quota."""
        id_, part = str(response["id"]), self._keys.of_name(tenant)
        keys = [part.response(tenant, id_), *self._counted(tenant)]
        quota = 0 if anyway else self._tenant_bytes
        outcome = await self._end(keys, [id_, orjson.dumps(response).decode(), quota])
        return cast(Literal["ended", "full", "gone"], outcome)

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
        found: Sequence[object] = ()
        if _ID.fullmatch(response_id):
            with redis_errors():
                found = await self._redis.hmget(
                    self._keys.of_name(tenant).response(tenant, response_id), ["previous", "input", "response"]
                )
        if not found or found[2] is None:
            raise NotFound("Response not found.", param="response_id")
        return _stored(*map(text, found))

    async def chain(self, tenant: str, response_id: str, *, max_bytes: int) -> list[StoredResponse]:
        """Return the response and all that it continues, oldest first, and keep them for longer.

        Raises InvalidRequest when one of them is not there, or they are too many or too long.
        """
        found: list[StoredResponse] = []
        wanted, size = response_id, 0
        while wanted or not found:
            if len(found) == self._chain:
                raise InvalidRequest(
                    f"A response may continue at most {self._chain} others.",
                    param="previous_response_id",
                    code="response_chain_too_long",
                )
            previous, *texts = await self._continued(tenant, wanted)
            size += sum(map(len, texts))
            if size > max_bytes:
                raise InvalidRequest(
                    f"The responses that this one continues hold more than {max_bytes} bytes.",
                    param="previous_response_id",
                    code="response_chain_too_long",
                )
            found.append(_stored(previous, *texts))
            wanted = previous
        return found[::-1]

    async def delete(self, tenant: str, response_id: str) -> None:
        """Delete the response. Raises NotFound."""
        await self.get(tenant, response_id)
        keys = [self._keys.of_name(tenant).response(tenant, response_id), *self._counted(tenant)]
        await self._delete.number(keys, [response_id])

    async def _continued(self, tenant: str, response_id: str) -> list[str]:
        part = self._keys.of_name(tenant)
        rows: list[str] = []
        if _ID.fullmatch(response_id):
            record = part.response(tenant, response_id)
            keys = [record, *self._counted(tenant), record]
            rows = await self._continue.rows(keys, [response_id, self._keep_ms])
        if not rows:
            raise InvalidRequest(
                "The previous response, or one that it continues, was not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        return rows

    def _counted(self, tenant: str) -> list[str]:
        part = self._keys.of_name(tenant)
        return [part.responses_of(tenant), part.response_sizes(tenant)]


def new_response_id(tenant: str) -> str:
    """Return a new id of 120 random bits at the tenant's place."""
    return placed_response_id(tenant, secrets.token_hex(16))


def _stored(previous: str, given: str, response: str) -> StoredResponse:
    return StoredResponse(orjson.loads(response), tuple(orjson.loads(given)), previous)
