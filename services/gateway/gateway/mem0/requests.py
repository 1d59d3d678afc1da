"""The mem0 client's request bodies. Unsupported options that would change the result are rejected, not ignored.

Filters have the same ``AND``, ``OR``, ``NOT`` and ``"*"`` as ours, and other names for a few fields.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, ValidationInfo

from memloop.wire.base import Wire
from memloop.wire.errors import NotSupported, Unprocessable
from memloop.wire.feedback import MAX_REASON_CHARS, FeedbackRequest, Verdict
from memloop.wire.fields import Metadata, check_keys, check_moment, clean_name, named, said
from memloop.wire.memory import MAX_ROLE_CHARS, MAX_TEXT_CHARS, ItemPatch, Scope, Source, StoreSearch
from memloop.wire.memory_requests import MemoryAdd
from memloop.wire.store_requests import MAX_DEPTH, StoreList

Filter: TypeAlias = dict[str, JsonValue]

ENTITIES: Final = ("user_id", "agent_id", "run_id")
_MAX_DEPTH: Final = 8
_GROUPS: Final = ("AND", "OR", "NOT")
_OURS: Final[Mapping[str, str]] = {
    "categories": "tags",
    "keywords": "memory",
    "memory_ids": "id",
    "timestamp": "valid_from",
    "created_at": "valid_from",
    "expiration_date": "expires_at",
}
_TIMES: Final = ("valid_from", "expires_at", "updated_at")
_NOT_SERVED: Final = ("feedback", "feedback_reason")


def refuse_app(app_id: object) -> None:
    """Raise NotSupported if there is an app id."""
    if app_id is not None:
        raise NotSupported("app_id is not supported. Use agent_id, run_id or metadata.", param="app_id")


def translated(filters: JsonValue, *, depth: int = 1) -> Filter:
    """Translate the filter for the store, which validates the rest.

    Raises NotSupported for unsupported fields and operators, Unprocessable for a malformed filter.
    """
    if not isinstance(filters, dict) or depth > _MAX_DEPTH:
        raise Unprocessable(f"filters must be objects at most {_MAX_DEPTH} levels deep", param="filters")
    entries = [entry for name, value in filters.items() for entry in _entries(name, value, depth)]
    names = [name for name, _ in entries]
    if len(names) == len(set(names)):
        return dict(entries)
    return {"AND": [{name: value} for name, value in entries]}


def _entries(name: str, value: JsonValue, depth: int) -> Iterator[tuple[str, JsonValue]]:
    if name in _GROUPS:
        inner = value if isinstance(value, list) else [value]
        yield name, [translated(one, depth=depth + 1) for one in inner]
    elif name == "metadata" and isinstance(value, dict):
        for key, one in value.items():
            yield from _conditions(f"metadata.{key}", one)
    else:
        refuse_app(name if name == "app_id" else None)
        if name in _NOT_SERVED:
            raise NotSupported(f"Filtering by {name} is not supported.", param="filters")
        yield from _conditions(_OURS.get(name, name), value)


def _conditions(field: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if not isinstance(value, dict):
        yield field, value
        return
    kept: Filter = {}
    for operator, operand in value.items():
        if operator == "nin":
            yield "NOT", [{field: {"in": operand}}]
        elif operator == "icontains":
            raise NotSupported("icontains is not supported. Use contains, which is case-sensitive.", param="filters")
        else:
            if field in _TIMES and isinstance(operand, int | float) and not isinstance(operand, bool):
                operand = moment(operand, param="filters").isoformat()  # mem0 allows seconds
            kept[operator] = operand
    if kept or not value:
        yield field, kept


def moment(seconds: float, *, param: str) -> datetime:
    """Convert Unix seconds to a time. Raises Unprocessable."""
    try:
        return check_moment(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        raise Unprocessable(f"{seconds} is not a valid time in seconds", param=param) from None


def _names(filters: JsonValue) -> Iterator[str]:
    if isinstance(filters, dict):
        for name, value in filters.items():
            yield name
            if name in _GROUPS:
                yield from _names(value)
    elif isinstance(filters, list):
        for one in filters:
            yield from _names(one)


_VERDICTS: Final[Mapping[str, Verdict]] = {"POSITIVE": "helpful", "NEGATIVE": "outdated", "VERY_NEGATIVE": "wrong"}
_NO_USER = "Every memory belongs to a user. Give a user_id, and optionally agent_id or run_id."


def _refuse(value: JsonValue, info: ValidationInfo) -> JsonValue:
    if value not in (None, False):
        raise NotSupported(f"{info.field_name} is not supported.", param=info.field_name)
    return value


Unserved: TypeAlias = Annotated[JsonValue, AfterValidator(_refuse)]
"""An option that would change the result. It may be null or false."""


class Options(Wire):
    """Fields of every request body. Older clients send the first five, which have no effect."""

    version: JsonValue = None
    api_version: JsonValue = None
    output_format: JsonValue = None
    org_id: JsonValue = None
    project_id: JsonValue = None
    filters: dict[str, JsonValue] | None = None


class Part(Wire):
    """One part of a message's content."""

    model_config = ConfigDict(extra="ignore")

    type: str
    text: str = ""


class Message(Wire):
    """A chat message. Unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    role: str = Field(max_length=MAX_ROLE_CHARS)
    content: str | tuple[Part, ...] | None = None
    name: str | None = None

    def source(self) -> Source:
        """Return the turn. Raises NotSupported for images and other media, Unprocessable for an overlong text."""
        parts = () if isinstance(self.content, str) else self.content or ()
        for part in parts:
            if part.type != "text":
                raise NotSupported(f"Message parts of type {part.type} are not supported, only text.", param="messages")
        text = self.content if isinstance(self.content, str) else "\n".join(part.text for part in parts)
        name = clean_name(self.name)
        if len(said(name, text)) > MAX_TEXT_CHARS:
            raise Unprocessable(f"a message may have at most {MAX_TEXT_CHARS} characters", param="messages")
        return Source(role=self.role, name=name, content=text)


class Add(Options):
    """``POST /v3/memories/add/``. Entity ids are top-level fields or inside ``filters``."""

    messages: tuple[Message, ...] = Field(min_length=1, max_length=200)
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    app_id: Unserved = None
    metadata: Annotated[Metadata, AfterValidator(check_keys)] | None = None
    infer: bool = True
    async_mode: bool = True
    timestamp: float | None = None
    expiration_date: str | None = None
    custom_categories: Unserved = None
    custom_instructions: Unserved = None
    agent_custom_instructions: Unserved = None
    structured_data_schema: Unserved = None
    includes: Unserved = None
    excludes: Unserved = None
    immutable: Unserved = None
    enable_graph: Unserved = None

    def native(self) -> MemoryAdd:
        """Convert to a native add. Raises NotSupported, Unprocessable."""
        ids = entity_ids(self.model_dump(include={*ENTITIES}, exclude_none=True), self.filters)
        if "user_id" not in ids:
            raise NotSupported(_NO_USER, param="user_id") if ids else Unprocessable(_NO_USER, param="user_id")
        return MemoryAdd(
            messages=tuple(message.source() for message in self.messages),
            metadata=self.metadata or {},
            timestamp=None if self.timestamp is None else moment(self.timestamp, param="timestamp"),
            infer=self.infer,
            sync=not self.async_mode,
            expires_at=None if self.expiration_date is None else end_of(self.expiration_date),
            **ids,
        )


class Filtered(Options):
    """What a search and a listing have in common."""

    metadata: dict[str, JsonValue] | None = None
    categories: tuple[str, ...] | None = None
    fields: tuple[str, ...] | None = None
    latest_only: bool | None = None
    show_expired: Unserved = None

    def every(self, *others: Filter) -> Filter:
        """Return all conditions as one filter of the store, which then looks through the whole tenant.

        Raises Unprocessable unless ``filters`` names a user, an agent or a run (``"*"`` matches any), NotSupported.
        """
        filters = self.filters or {}
        if not any(name in ENTITIES for name in _names(filters)):
            message = "filters must name a user_id, an agent_id or a run_id ('*' for any of them)."
            raise Unprocessable(message, param="filters")
        conditions: list[JsonValue] = [translated(filters), *others]
        if self.categories:
            conditions.append({"tags": {"in": [*self.categories]}})
        if self.metadata:
            conditions.append(translated({"metadata": self.metadata}))
        return {"AND": conditions}


class Search(Filtered):
    """``POST /v3/memories/search/``. Searches always match keywords too, so ``keyword_search`` has no effect."""

    query: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    top_k: int = Field(default=10, ge=1, le=100)
    threshold: float | None = Field(default=None, ge=0.0)
    rerank: bool | None = None
    keyword_search: bool | None = None
    reference_date: Unserved = None

    def native(self, tenant: str) -> StoreSearch:
        """Convert to a search of the store."""
        return StoreSearch(
            namespace=Scope(tenant=tenant),
            query=self.query,
            top_k=self.top_k,
            threshold=self.threshold,
            latest_only=self.latest_only is not False,
            filters=self.every(),
        )


class GetAll(Filtered):
    """``POST /v3/memories/``."""

    start_date: str | None = None
    end_date: str | None = None

    def native(self, tenant: str, *, page: int, page_size: int) -> StoreList:
        """Convert to a listing of the store."""
        bounds = {"gte": self.start_date, "lte": self.end_date}
        dates: Filter = {name: value for name, value in bounds.items() if value is not None}
        return StoreList(
            scope=Scope(tenant=tenant),
            filters=self.every({"valid_from": dates}) if dates else self.every(),
            latest_only=self.latest_only is not False,
            skip=min((page - 1) * page_size, MAX_DEPTH),
            limit=page_size,
        )


class Update(Options):
    """``PUT /v1/memories/{id}/``. Only ``expiration_date`` can be cleared."""

    text: str | None = Field(default=None, min_length=1, max_length=MAX_TEXT_CHARS)
    metadata: Annotated[Metadata, AfterValidator(check_keys)] | None = None
    timestamp: Unserved = None
    expiration_date: str | None = None

    def native(self) -> ItemPatch:
        """Convert to a native edit. Raises NotSupported, Unprocessable."""
        edit: dict[str, object] = {}
        if self.text is not None:
            edit["memory"] = self.text
        if self.metadata is not None:
            edit["metadata"] = self.metadata
        if "expiration_date" in self.model_fields_set:
            edit["expires_at"] = None if self.expiration_date is None else end_of(self.expiration_date)
        if not edit:
            raise Unprocessable("Nothing to update. Give text, metadata or expiration_date.")
        return ItemPatch.model_validate(edit)


class FeedbackOnMemory(Wire):
    """``POST /v1/feedback/``. A null verdict withdraws the one that was given."""

    memory_id: str
    feedback: Literal["POSITIVE", "NEGATIVE", "VERY_NEGATIVE"] | None = None
    feedback_reason: str | None = Field(default=None, max_length=MAX_REASON_CHARS)

    def native(self) -> FeedbackRequest:
        """Convert to a native verdict: a negative memory falls in searches, a very negative one is left out."""
        verdict = _VERDICTS[self.feedback] if self.feedback else None
        return FeedbackRequest(feedback=verdict, reason=self.feedback_reason)


class BatchUpdate(Wire):
    """``PUT /v1/batch/``."""

    class One(Update):
        """One memory's edit."""

        memory_id: str

    memories: tuple[One, ...] = Field(min_length=1, max_length=1000)


class BatchDelete(Wire):
    """``DELETE /v1/batch/``."""

    class One(Wire):
        """The id of one memory."""

        memory_id: str

    memories: tuple[One, ...] = Field(min_length=1, max_length=1000)


def entity_ids(given: dict[str, str], filters: dict[str, JsonValue] | None) -> dict[str, str]:
    """Merge the ids given directly with those in ``filters``, which may contain only equalities.

    Raises Unprocessable for other filters, invalid ids and duplicates; NotSupported for an app id.
    """
    ids = dict(given)
    for name, value in (filters or {}).items():
        refuse_app(value if name == "app_id" else None)
        if name not in ENTITIES or not isinstance(value, str):
            raise Unprocessable("filters may contain only entity ids with string values.", param="filters")
        if ids.setdefault(name, value) != value:
            raise Unprocessable(f"{name} is given twice.", param=name)
    for name, value in ids.items():
        if not value:
            raise Unprocessable(f"{name} must not be empty.", param=name)
        named(value, param=name)
    return ids


def end_of(text: str) -> datetime:
    """Return the end of the day in UTC: a memory is found through its expiration date. Raises Unprocessable."""
    try:
        day = date.fromisoformat(text)
        return check_moment(datetime.combine(day + timedelta(days=1), time(), tzinfo=UTC))
    except (ValueError, OverflowError):
        raise Unprocessable("expiration_date must be a date, YYYY-MM-DD.", param="expiration_date") from None
