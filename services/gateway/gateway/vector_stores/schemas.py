"""The bodies of ``/v1/vector_stores``, with the filters on files' attributes.

Source: OpenAI API reference, "Vector stores".
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, FiniteFloat, model_validator
from pydantic_core import PydanticCustomError

from memloop.wire.base import A_BOOLEAN, Given, Integral, Wire
from memloop.wire.chat import Metadata
from memloop.wire.fields import CHUNK_OVERLAP_TOO_LARGE, FILTER_TOO_LARGE
from memloop.wire.lists import Deleted, ListPage

AttributeValue: TypeAlias = (
    Annotated[str, Field(max_length=512)]
    | Annotated[bool, Field(strict=True)]
    | Annotated[FiniteFloat, Field(strict=True)]
)
"""Strict: a text of digits that is too long for a text is no number either."""
_ORDERS: Final = {"lt": (-1,), "lte": (-1, 0), "gt": (1,), "gte": (1, 0)}
_MOST_CONDITIONS: Final = 100
_MOST_LEVELS: Final = 8


class Comparison(Wire):
    """A condition on one attribute. A file without the attribute passes ``ne`` and ``nin`` alone."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: str = Field(max_length=64)
    value: AttributeValue | Annotated[list[AttributeValue], Field(max_length=_MOST_CONDITIONS)]


class Compound(Wire):
    """Conditions of which all or one must hold."""

    type: Literal["and", "or"]
    filters: list["Comparison | Compound"] = Field(min_length=1, max_length=_MOST_CONDITIONS)


def _bounded(found: Comparison | Compound) -> Comparison | Compound:
    levels, conditions = _size(found)
    if levels > _MOST_LEVELS or conditions > _MOST_CONDITIONS:
        raise PydanticCustomError(
            FILTER_TOO_LARGE,
            "A filter has at most {levels} levels and {conditions} conditions.",
            {"levels": _MOST_LEVELS, "conditions": _MOST_CONDITIONS},
        )
    return found


def _size(found: Comparison | Compound) -> tuple[int, int]:
    if isinstance(found, Comparison):
        return 1, 1
    sizes = [_size(inner) for inner in found.filters]
    return 1 + max(levels for levels, _ in sizes), 1 + sum(count for _, count in sizes)


Filter: TypeAlias = Annotated[Comparison | Compound, AfterValidator(_bounded)]


def passes(filters: Comparison | Compound, attributes: Mapping[str, str | bool | float]) -> bool:
    """Return whether a file with these attributes passes the filter."""
    if isinstance(filters, Compound):
        each = (passes(inner, attributes) for inner in filters.filters)
        return all(each) if filters.type == "and" else any(each)
    value = attributes.get(filters.key)
    wanted = filters.value if isinstance(filters.value, list) else [filters.value]
    match filters.type:
        case "eq" | "in":
            return any(_same(value, each) for each in wanted)
        case "ne" | "nin":
            return not any(_same(value, each) for each in wanted)
        case _:
            return len(wanted) == 1 and _order(value, wanted[0]) in _ORDERS[filters.type]


def _same(value: str | bool | float | None, other: str | bool | float) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _order(value: str | bool | float | None, other: str | bool | float) -> int | None:
    """Return the order of two numbers or two texts; None for values that have no order."""
    if isinstance(value, str) and isinstance(other, str):
        return (value > other) - (value < other)
    if value is None or isinstance(value, str | bool) or isinstance(other, str | bool):
        return None
    return (value > other) - (value < other)


FileId: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]
AttributeName: TypeAlias = Annotated[str, Field(max_length=64)]
Attributes: TypeAlias = Annotated[dict[AttributeName, AttributeValue], Field(max_length=16)]
FileStatus: TypeAlias = Literal["in_progress", "completed", "cancelled", "failed"]
MOST_RESULTS: Final = 50
_MOST_FILES_AT_ONCE: Final = 100
_MOST_FILES_OF_A_BATCH: Final = 2000


class ExpiresAfter(Wire):
    """The end of a vector store: so many days after it was last used."""

    anchor: Literal["last_active_at"]
    days: Annotated[int, Field(ge=1, le=365), Integral]


class StaticChunks(Wire):
    """The size of a chunk in tokens, and of what it repeats of the chunk before."""

    max_chunk_size_tokens: Annotated[int, Field(ge=100, le=4096), Integral] = 800
    chunk_overlap_tokens: Annotated[int, Field(ge=0, le=2048), Integral] = 400

    @model_validator(mode="after")
    def _overlap_is_at_most_half(self) -> "StaticChunks":
        if 2 * self.chunk_overlap_tokens > self.max_chunk_size_tokens:
            raise PydanticCustomError(
                CHUNK_OVERLAP_TOO_LARGE, "chunk_overlap_tokens must be at most half of max_chunk_size_tokens."
            )
        return self


class StaticStrategy(Wire):
    """Chunks of a size that the client chose."""

    type: Literal["static"]
    static: StaticChunks = StaticChunks()


class AutoStrategy(Wire):
    """Chunks of the default size."""

    type: Literal["auto"]


Strategy: TypeAlias = Annotated[StaticStrategy | AutoStrategy, Field(discriminator="type")]


class VectorStoreCreate(Wire):
    """``POST /v1/vector_stores``. ``metadata.user_id`` names the user whose erasure deletes the vector store."""

    name: str | None = Field(default=None, max_length=256)
    description: str | None = Field(default=None, max_length=1024)
    file_ids: list[FileId] = Field(default_factory=list[str], max_length=_MOST_FILES_AT_ONCE)
    chunking_strategy: Strategy | None = None
    expires_after: ExpiresAfter | None = None
    metadata: Metadata | None = None


class VectorStoreUpdate(Wire):
    """``POST /v1/vector_stores/{id}``: fields that are not given stay."""

    name: str | None = Field(default=None, max_length=256)
    expires_after: ExpiresAfter | None = None
    metadata: Metadata | None = None


class FileCounts(Wire):
    """The number of files by status."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    total: int = 0


class VectorStore(Wire):
    """A vector store. Times are in seconds since the epoch, ``usage_bytes`` counts the text of its files."""

    id: str
    object: Literal["vector_store"] = "vector_store"
    created_at: int
    name: str
    description: str | None = None
    usage_bytes: int
    file_counts: FileCounts
    status: Literal["expired", "in_progress", "completed"]
    expires_after: ExpiresAfter | None = None
    expires_at: int | None = None
    last_active_at: int
    metadata: Metadata


class VectorStoreDeleted(Deleted):
    """The answer to a deletion."""

    object: Literal["vector_store.deleted"] = "vector_store.deleted"


class VectorStorePage(ListPage[VectorStore]):
    """``GET /v1/vector_stores``."""


class FileAttach(Wire):
    """``POST /v1/vector_stores/{id}/files``."""

    file_id: FileId
    attributes: Attributes | None = None
    chunking_strategy: Strategy | None = None

    @property
    def chunks(self) -> StaticStrategy:
        """The chunks that the client chose, else those of the default size."""
        chosen = self.chunking_strategy
        return chosen if isinstance(chosen, StaticStrategy) else StaticStrategy(type="static")


class FileBatchCreate(Wire):
    """``POST /v1/vector_stores/{id}/file_batches``.

    ``attributes`` and ``chunking_strategy`` are those of all ``file_ids``; each of ``files`` has its own.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["file_ids"]}, {"required": ["files"]}]})

    file_ids: list[FileId] = Field(default_factory=list[str], min_length=1, max_length=_MOST_FILES_OF_A_BATCH)
    files: list[FileAttach] = Field(default_factory=list[FileAttach], min_length=1, max_length=_MOST_FILES_OF_A_BATCH)
    attributes: Attributes | None = None
    chunking_strategy: Strategy | None = None

    @model_validator(mode="after")
    def _one_list(self) -> "FileBatchCreate":
        if bool(self.file_ids) == bool(self.files):
            raise ValueError("either file_ids or files must name at least one file")
        return self

    @property
    def each(self) -> list[FileAttach]:
        """The files, each with what it is added with."""
        given, chunks = self.attributes, self.chunking_strategy
        return self.files or [
            FileAttach(file_id=one, attributes=given, chunking_strategy=chunks) for one in self.file_ids
        ]


class FileUpdate(Wire):
    """``POST /v1/vector_stores/{id}/files/{file_id}``: new attributes in the place of the old."""

    attributes: Attributes | None


class LastError(Wire):
    """Why a file could not be indexed."""

    code: Literal["server_error", "unsupported_file", "invalid_file"]
    message: str


class VectorStoreFile(Wire):
    """A file of a vector store. ``usage_bytes`` counts its text."""

    id: str
    object: Literal["vector_store.file"] = "vector_store.file"
    created_at: int
    vector_store_id: str
    status: FileStatus
    usage_bytes: int = 0
    last_error: LastError | None = None
    attributes: Attributes = Field(default_factory=dict[str, AttributeValue])
    chunking_strategy: StaticStrategy


class VectorStoreFilePage(ListPage[VectorStoreFile]):
    """``GET /v1/vector_stores/{id}/files``."""


class VectorStoreFileDeleted(Deleted):
    """The answer to a deletion of a file from a vector store; the file itself stays."""

    object: Literal["vector_store.file.deleted"] = "vector_store.file.deleted"


class VectorStoreFileBatch(Wire):
    """Files that were added together. A file that is taken out or added again leaves its batch."""

    id: str
    object: Literal["vector_store.files_batch"] = "vector_store.files_batch"
    created_at: int
    vector_store_id: str
    status: FileStatus
    file_counts: FileCounts

    @classmethod
    def of(cls, batch_id: str, files: Sequence[VectorStoreFile]) -> "VectorStoreFileBatch":
        """Return the batch of these files, at least one."""
        counts = FileCounts(**Counter(one.status for one in files), total=len(files))
        status: FileStatus = "failed" if counts.failed == counts.total else "completed"
        return cls(
            id=batch_id,
            created_at=files[0].created_at,
            vector_store_id=files[0].vector_store_id,
            status="in_progress" if counts.in_progress else "cancelled" if counts.cancelled else status,
            file_counts=counts,
        )


class RankingOptions(Wire):
    """The ranking is always the memory store's. ``score_threshold`` leaves out results with a lower score."""

    ranker: Literal["none", "auto", "default-2024-11-15"] = "auto"
    score_threshold: FiniteFloat = Field(default=0.0, ge=0.0, le=1.0, strict=True)


class SearchFields(Wire):
    """What a search takes beside its query."""

    filters: Filter | None = None
    max_num_results: Annotated[int, Field(ge=1, le=MOST_RESULTS), Integral] = 10
    ranking_options: RankingOptions | None = None


class VectorStoreSearch(SearchFields):
    """``POST /v1/vector_stores/{id}/search``. No query is rewritten; several count as one."""

    query: (
        Annotated[str, Field(min_length=1, max_length=4096)]
        | Annotated[list[Annotated[str, Field(min_length=1, max_length=4096)]], Field(min_length=1, max_length=5)]
    )
    rewrite_query: Annotated[Literal[False], A_BOOLEAN] | None = None

    @property
    def text(self) -> str:
        """The query as one text."""
        return self.query if isinstance(self.query, str) else "\n".join(self.query)


class SearchContent(Wire):
    """The text of a chunk."""

    type: Literal["text"] = "text"
    text: str


class Found(Wire):
    """A chunk that a search found. ``score`` is between 0 and 1."""

    file_id: str
    filename: str
    score: float
    attributes: Attributes
    content: tuple[SearchContent, ...]

    @property
    def text(self) -> str:
        """The chunk."""
        return "".join(part.text for part in self.content)


class SearchPage(Wire):
    """The results of a search, best first."""

    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"
    search_query: list[str]
    data: list[Found]
    has_more: Literal[False] = False
    next_page: None = None


class FileSearch(Given, SearchFields):
    """The tool ``file_search`` of a response."""

    type: Literal["file_search"]
    vector_store_ids: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = Field(min_length=1, max_length=2)
    max_num_results: Annotated[int, Field(ge=1, le=MOST_RESULTS, strict=True), Integral] = 20
