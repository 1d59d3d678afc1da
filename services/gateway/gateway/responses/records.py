"""Keeps responses in Redis: each with its own input and output, and the id of the one that it continues.

A tenant's responses share a tag with the count of their bytes, so that one step checks the quota and keeps a response.
They expire ``keep_s`` after they were made or last continued. An erased user's responses are deleted, and a response
that began before the erasure is not kept after it.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import orjson
from redis.asyncio import Redis

from gateway.responses.key_names import Keys, placed_response_id
from gateway.responses.scripts import CONTINUE, DELETE, END, KEEP, ROOM
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, NotFound, RateLimited
from memloop.wire.memory import Namespace, Scope
from memloop_service.redis_guard import UNGUARDED, Guard
from memloop_service.redis_link import acknowledged, redis_errors
from memloop_service.redis_room import RedisRoom
from memloop_service.redis_scripts import Script, text

Outcome: TypeAlias = Literal["kept", "full", "erased", "changed"]
_ERASED_KEEP_MS: Final = 24 * 60 * 60 * 1000
"""Longer than any request takes."""
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
    def user_id(self) -> str:
        """The user, or an empty text."""
        return self.namespace.user_id if self.namespace is not None else ""

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
        self._keep = Script(redis, KEEP, acknowledged=True)
        self._continue = Script(redis, CONTINUE)
        self._delete = Script(redis, DELETE, acknowledged=True)
        self._end = Script(redis, END, acknowledged=True)

    async def begin(self, owner: Owner, *, size: int) -> str:
        """Return the user's erasures so far, for ``keep`` of a response of at least ``size`` bytes.

        Raises RateLimited when the tenant's quota has no room for it, Unavailable while Redis is nearly full.
        """
        await self._redis_room.check()
        part = self._keys.of_name(owner.tenant)
        keys = [part.responses_erased(owner.tenant, owner.user_id), *self._counted(owner.tenant)]
        held, erasures = await self._room.rows(keys, list(owner.scopes))
        if int(held) + size + _BYTES_BESIDE > self._tenant_bytes:
            raise self.over_quota()
        return erasures

    async def keep(self, stored: StoredResponse, owner: Owner, began: str, *, guard: Guard | None = None) -> Outcome:
        """Keep the response, unless it does not fit in the quota or its user was erased since ``began``.

        With ``guard`` it is not kept either if the policies have ``changed`` by which it was redacted.
        """
        tenant, part = owner.tenant, self._keys.of_name(owner.tenant)
        namespace, scopes = owner.namespace, owner.scopes
        fields = {
            "user": owner.user_id.encode(),
            "agent": (namespace.agent_id or "" if namespace is not None else "").encode(),
            "run": (namespace.run_id or "" if namespace is not None else "").encode(),
            "previous": stored.previous.encode(),
            "input": orjson.dumps(stored.input),
            "response": orjson.dumps(stored.response),
        }
        size = _BYTES_BESIDE + sum(map(len, fields.values()))
        guarding = guard.args if guard is not None else UNGUARDED
        args = [stored.id, self._keep_ms, size, self._tenant_bytes, began, *guarding, len(scopes), *scopes]
        keys = [part.responses_erased(tenant, owner.user_id), *self._counted(tenant), part.response(tenant, stored.id)]
        of_user = part.responses_of_user(tenant, owner.user_id)
        pairs = [part for pair in fields.items() for part in pair]
        guarded = [guard.key] if guard is not None else []
        return cast(Outcome, await self._keep([*keys, of_user, *guarded], [*args, *pairs]))

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
        part = self._keys.of_name(tenant)
        await self.get(tenant, response_id)
        with redis_errors():
            user = await self._redis.hget(part.response(tenant, response_id), "user")
        await self._deleted(tenant, response_id, "" if user is None else text(user))

    async def forget(self, namespace: Namespace, *, first: Callable[[str, str], Awaitable[None]] | None = None) -> int:
        """Delete the responses of the namespace; those that are being made will not be kept. Returns the number.

        ``first`` is called with the tenant and the id of each before it is deleted.
        """
        tenant, part = namespace.tenant, self._keys.of_name(namespace.tenant)
        erased = part.responses_erased(tenant, namespace.user_id)
        with redis_errors():
            await acknowledged(self._redis, "HSET", erased, namespace.scopes()[-1], secrets.token_hex(8))
            await self._redis.pexpire(erased, _ERASED_KEEP_MS)
            ids: object = await self._redis.zrange(  # pyright: ignore[reportUnknownMemberType]
                part.responses_of_user(tenant, namespace.user_id), 0, -1
            )
        gone = 0
        for response_id in map(text, cast(Sequence[object], ids)):
            with redis_errors():
                whose = await self._redis.hmget(part.response(tenant, response_id), ["agent", "run"])
            agent, run = ("" if value is None else text(value) for value in whose)
            if namespace.agent_id in (None, agent) and namespace.run_id in (None, run):
                if first is not None:
                    await first(tenant, response_id)
                gone += await self._deleted(tenant, response_id, namespace.user_id)
        return gone

    async def _continued(self, tenant: str, response_id: str) -> list[str]:
        part = self._keys.of_name(tenant)
        rows: list[str] = []
        if _ID.fullmatch(response_id):
            record = part.response(tenant, response_id)
            keys = [record, *self._counted(tenant), record]
            args = [response_id, self._keep_ms, part.responses_of_user(tenant, "")]
            rows = await self._continue.rows(keys, args)
        if not rows:
            raise InvalidRequest(
                "The previous response, or one that it continues, was not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        return rows[1:]

    async def _deleted(self, tenant: str, response_id: str, user_id: str) -> int:
        part = self._keys.of_name(tenant)
        keys = [part.response(tenant, response_id), *self._counted(tenant), part.responses_of_user(tenant, user_id)]
        return await self._delete.number(keys, [response_id])

    def _counted(self, tenant: str) -> list[str]:
        part = self._keys.of_name(tenant)
        return [part.responses_of(tenant), part.response_sizes(tenant)]


def new_response_id(tenant: str) -> str:
    """Return a new id of 120 random bits at the tenant's place."""
    return placed_response_id(tenant, secrets.token_hex(16))


def _stored(previous: str, given: str, response: str) -> StoredResponse:
    return StoredResponse(orjson.loads(response), tuple(orjson.loads(given)), previous)
