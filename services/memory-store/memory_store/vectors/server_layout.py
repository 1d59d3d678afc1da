"""Where a user's memories lie in a collection of a Qdrant server, and which of its shards a request asks.

Qdrant counts the rarity of words within each shard. Words rank the same on any number of shards if all memories of a
user lie on one. A distributed server has shards with keys for that. Points carry their tenant and user in one field.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue
from qdrant_client import models

from memory_store.vectors import filters as f
from memory_store.vectors.filters import AllOf, Clauses, Condition, Equals, Not, OneOf
from memory_store.vectors.port import Payload, Point
from memory_store.vectors.schema import PAYLOAD_INDEXES, IndexKind


def to_filter(condition: f.Condition) -> models.Filter:
    """A filter that holds exactly when the condition holds."""
    clauses = f.Clauses.of(condition)
    return models.Filter(
        must=[_translate(one) for one in clauses.must], must_not=[_translate(one) for one in clauses.must_not]
    )


def _translate(condition: f.Condition) -> models.Condition:
    match condition:
        case f.AllOf() | f.Not():
            return to_filter(condition)
        case f.AnyOf(conditions):
            return models.Filter(should=[_translate(one) for one in conditions])
        case f.Ids(ids):
            return models.HasIdCondition(has_id=list(ids))
        case f.Missing(field):
            return models.IsEmptyCondition(is_empty=models.PayloadField(key=field))
        case f.Equals(field, value):
            return models.FieldCondition(key=field, match=models.MatchValue(value=value))
        case f.OneOf(field, values):
            return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))
        case f.Contains(field, text):
            return models.FieldCondition(key=field, match=models.MatchSubstring(substring=text))
        case f.NumberRange(field, gt, gte, lt, lte):
            return models.FieldCondition(key=field, range=models.Range(gt=gt, gte=gte, lt=lt, lte=lte))
        case f.TimeRange(field, gt, gte, lt, lte):
            return models.FieldCondition(key=field, range=models.DatetimeRange(gt=gt, gte=gte, lt=lt, lte=lte))


OWNER = "owner"
"""The payload field of tenant and user. The adapter writes it; a payload that it returns does not have it."""
_SHARD_KEYS = "memloop_shard_keys"
"""The entry of a collection's metadata that its creation sets, so that all stores agree on the number."""
_OWNER_INDEXES: tuple[tuple[str, IndexKind], ...] = (
    (OWNER, "tenant"),
    *((field, "keyword" if kind == "tenant" else kind) for field, kind in PAYLOAD_INDEXES),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """``shard_keys``: their number; 0 if the collection has none. ``has_owners``: whether all points have an owner."""

    shard_keys: int = 0
    has_owners: bool = True

    @classmethod
    def of(cls, info: models.CollectionInfo) -> "Layout":
        """The layout of a stored collection; one that an earlier version made has neither owners nor shard keys."""
        count = (info.config.metadata or {}).get(_SHARD_KEYS)
        return cls(count) if isinstance(count, int) else cls(has_owners=False)

    @property
    def metadata(self) -> dict[str, int]:
        """The metadata of a new collection."""
        return {_SHARD_KEYS: self.shard_keys}

    @property
    def indexes(self) -> Sequence[tuple[str, IndexKind]]:
        """The payload indexes, in the order in which they are made."""
        return _OWNER_INDEXES if self.has_owners else PAYLOAD_INDEXES

    @property
    def keys(self) -> list[models.ShardKey]:
        return [_key(number) for number in range(self.shard_keys)]

    def filter(self, where: Condition) -> models.Filter:
        """The condition as the client's model, by owner if the condition names tenant and user."""
        return to_filter(_by_owner(where) if self.has_owners else where)

    def read_from(self, where: Condition) -> list[models.ShardKey] | None:
        """The shard keys that a read of such points names; None asks every shard."""
        return self._of_owners(where) or None

    def deleted_from(self, where: Condition) -> list[models.ShardKey] | None:
        """The shard keys that a deletion of such points names; None where there are none."""
        return self._of_owners(where) or self.keys or None

    def placed(self, points: Sequence[Point]) -> Mapping[str | None, Sequence[Point]]:
        """The points by their shard key."""
        by_key: dict[str | None, list[Point]] = defaultdict(list)
        for point in points:
            by_key[self._of_owner(owner_of(point.payload)) if self.shard_keys else None].append(point)
        return by_key

    def _of_owners(self, where: Condition) -> list[models.ShardKey]:
        named = _owners(Clauses.of(where)) if self.shard_keys else None
        return [*sorted({self._of_owner(owner) for owner in named[1]})] if named else []

    def _of_owner(self, owner: str) -> str:
        digest = hashlib.blake2b(owner.encode(), digest_size=8).digest()
        return _key(int.from_bytes(digest) % self.shard_keys)


def owner_of(payload: Payload) -> str:
    return _owner(payload.get("tenant", ""), payload.get("user_id", ""))


def _owner(tenant: JsonValue, user_id: JsonValue) -> str:
    return f"{len(str(tenant))}:{tenant}/{user_id}"


def _key(number: int) -> str:
    return f"users-{number}"


def _owners(clauses: Clauses) -> tuple[tuple[Condition, Condition], tuple[str, ...]] | None:
    """The clauses that name tenant and users, and the owners that these are; None if either is missing."""
    tenant = next((one for one in clauses.must if isinstance(one, Equals) and one.field == "tenant"), None)
    users = next((one for one in clauses.must if isinstance(one, Equals | OneOf) and one.field == "user_id"), None)
    if tenant is None or users is None:
        return None
    ids = users.values if isinstance(users, OneOf) else (users.value,)
    return (tenant, users), tuple(_owner(tenant.value, one) for one in ids)


def _by_owner(where: Condition) -> Condition:
    """The same condition with one clause for tenant and users, if it names both."""
    clauses = Clauses.of(where)
    named = _owners(clauses)
    if named is None:
        return where
    replaced, owners = named
    others = (one for one in clauses.must if one not in replaced)
    return AllOf((OneOf(OWNER, owners), *others, *map(Not, clauses.must_not)))
