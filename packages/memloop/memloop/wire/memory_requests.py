"""Bodies of the gateway's public memory routes."""

from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue
from pydantic.config import JsonDict

from memloop.wire.base import Wire
from memloop.wire.limits import Metadata, Moment
from memloop.wire.memory import MAX_BATCH_STATEMENTS, SearchOptions, Source, StoreSearch, UserFields
from memloop.wire.names import check_keys

_SOME_TEXT: JsonDict = {"contains": {"properties": {"content": {"pattern": r"\S"}}}}


class BatchedAdd(UserFields):
    """One add of a batch: its texts are stored verbatim."""

    messages: tuple[Source, ...] = Field(min_length=1, max_length=200, json_schema_extra=_SOME_TEXT)
    metadata: Annotated[Metadata, AfterValidator(check_keys)] = Field(default_factory=dict[str, JsonValue])
    timestamp: Moment | None = None
    expires_at: Moment | None = None


class MemoryAdd(BatchedAdd):
    """``POST /v1/memory/add``. ``infer`` runs the MemReader loop; ``sync`` waits for it."""

    infer: bool = True
    sync: bool = False


def _few_messages(adds: tuple[BatchedAdd, ...]) -> tuple[BatchedAdd, ...]:
    if sum(len(add.messages) for add in adds) > MAX_BATCH_STATEMENTS:
        raise ValueError(f"a batch has at most {MAX_BATCH_STATEMENTS} messages in all its adds")
    return adds


class MemoryBatch(Wire):
    """``POST /v1/memory/batch``: many adds, of any users, at once."""

    adds: Annotated[tuple[BatchedAdd, ...], AfterValidator(_few_messages)] = Field(min_length=1, max_length=500)


class MemorySearch(SearchOptions, UserFields):
    """``POST /v1/memory/search``. ``category`` finds the memories of one category alone."""

    category: str | None = Field(default=None, min_length=1, max_length=64)

    def in_tenant(self, tenant: str) -> StoreSearch:
        """Return the store's search for it."""
        options = self.model_dump(exclude={*UserFields.model_fields, "category", "filters"})
        return StoreSearch(namespace=self.namespace(tenant), filters=self._filters(), **options)

    def _filters(self) -> dict[str, JsonValue] | None:
        if self.category is None:
            return self.filters
        within: dict[str, JsonValue] = {"tags": {"in": [self.category]}}
        return within if self.filters is None else {"AND": [within, self.filters]}
