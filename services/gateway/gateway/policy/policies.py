"""Stores memory policies in Redis, one hash per tenant, and resolves them: user over agent over tenant over settings.

A policy is read for every write, never cached: from the answer to a change on, no write misses it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from redis.asyncio import Redis

from gateway.redis import Script, policies_of, text
from memloop.wire.errors import Conflict
from memloop.wire.memory import Scope
from memloop.wire.policy import MemoryPolicy, RedactionPolicy
from memloop.wire.redaction import Kind, KindNames, kinds_of
from memloop_service.redis_link import acknowledged, redis_errors

MOST_OF_A_TENANT: Final = 10_000

_PUT: Final = """
-- KEYS: the tenant's policies; ARGV: level, policy, most. Returns 'full' or 'kept'
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then
  return 'full'
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 'kept'
"""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The policies of some of a tenant's namespaces, by level; ``default_kinds`` are redacted without any policy."""

    default_kinds: frozenset[Kind]
    levels: Mapping[str, MemoryPolicy]

    def of(self, scope: Scope) -> MemoryPolicy:
        """Return the settings in force for the scope, with every field of the redaction set."""
        enabled, kinds = True, cast("KindNames | None", None)
        for level in levels_of(scope):
            redaction = self.levels.get(level, MemoryPolicy()).redaction
            enabled = enabled if redaction.enabled is None else redaction.enabled
            kinds = kinds if redaction.kinds is None else redaction.kinds
        return MemoryPolicy(redaction=RedactionPolicy(enabled=enabled, kinds=self._named(kinds)))

    def own(self, scope: Scope) -> MemoryPolicy | None:
        """Return the policy of the scope's own level."""
        return self.levels.get(levels_of(scope)[-1])

    def kinds(self, scope: Scope) -> frozenset[Kind]:
        """Return the kinds that are redacted in the scope."""
        redaction = self.of(scope).redaction
        return kinds_of(redaction.kinds or ()) if redaction.enabled else frozenset()

    def _named(self, kinds: KindNames | None) -> KindNames:
        return tuple(sorted(self.default_kinds if kinds is None else kinds_of(kinds)))


class Policies:
    """The policies in one Redis. Methods raise Unavailable when it is unreachable: nothing is kept unredacted then."""

    def __init__(self, redis: Redis, *, default_kinds: frozenset[Kind]) -> None:
        self._redis = redis
        self._default_kinds = default_kinds
        self._put = Script(redis, _PUT, acknowledged=True)

    async def load(self, tenant: str, scopes: Iterable[Scope]) -> Loaded:
        """Read the policies of the tenant's scopes in one round trip."""
        levels = list(dict.fromkeys(level for scope in scopes for level in levels_of(scope)))
        found: Any = []
        if levels:
            with redis_errors():
                found = await self._redis.hmget(policies_of(tenant), levels)
        pairs = zip(levels, cast(list[object], found), strict=True)
        return Loaded(
            self._default_kinds,
            {level: MemoryPolicy.model_validate_json(text(raw)) for level, raw in pairs if raw is not None},
        )

    async def put(self, scope: Scope, policy: MemoryPolicy) -> None:
        """Replace the policy of the scope's own level. Raises Conflict when the tenant has too many."""
        args = [levels_of(scope)[-1], policy.model_dump_json(exclude_none=True), MOST_OF_A_TENANT]
        if await self._put([policies_of(scope.tenant)], args) == "full":
            raise Conflict(f"A tenant may have {MOST_OF_A_TENANT} memory policies.", code="too_many_policies")

    async def delete(self, scope: Scope) -> None:
        """Delete the policy of the scope's own level, if it has one."""
        with redis_errors():
            await acknowledged(self._redis, "HDEL", policies_of(scope.tenant), levels_of(scope)[-1])


def levels_of(scope: Scope) -> tuple[str, ...]:
    """Return the names of the levels that apply to the scope, the general one first."""
    agent = (f"agent:{scope.agent_id}",) if scope.agent_id is not None else ()
    user = (f"user:{scope.user_id}",) if scope.user_id is not None else ()
    return ("tenant", *agent, *user)
