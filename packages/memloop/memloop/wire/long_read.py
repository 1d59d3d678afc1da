"""Bodies and events of ``/v1/long-read``.

Source of the conventions: OpenAI API reference, "Responses" and "Streaming".
"""

import time
from datetime import datetime
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from memloop.wire.base import Integral, Wire
from memloop.wire.chat import Metadata
from memloop.wire.errors import ErrorBody
from memloop.wire.fields import WebUrl
from memloop.wire.memory import Usage, UserFields
from memloop.wire.reading import ReadingOptions

MAX_QUESTIONS = 32
"""Of one read."""
MAX_FILES = 200
"""Of one read."""

Strategy: TypeAlias = Literal["memagent", "memreread"]
EvidenceSource: TypeAlias = Literal["memory", "output_text"]
ServiceTier: TypeAlias = Literal["priority", "default", "flex"]
"""Of background reads that wait, which are taken first."""
ReadStatus: TypeAlias = Literal["queued", "in_progress", "completed", "failed", "cancelled", "incomplete"]

_SOME_TEXT: JsonDict = {"type": "string", "pattern": r"\S"}


def _one_of(**ways: JsonDict) -> list[JsonDict]:
    """Return the JSON schemas of an object that has one of these fields, as given, and none of the others."""
    none: JsonDict = {"type": "null"}
    return [
        {"required": [name], "properties": {name: given, **{other: none for other in ways if other != name}}}
        for name, given in ways.items()
    ]


class Document(Wire):
    """The text to read, the id of an uploaded file, or the ids of several that are read in this order."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [*_one_of(text=_SOME_TEXT, file_id=_SOME_TEXT, file_ids={"type": "array"})]}
    )

    text: str | None = None
    file_id: str | None = None
    file_ids: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] | None = Field(
        default=None, min_length=1, max_length=MAX_FILES
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum(given is not None for given in (self.text, self.file_id, self.file_ids)) != 1:
            raise ValueError("give exactly one of text, file_id and file_ids")
        return self

    @property
    def files(self) -> tuple[str, ...]:
        """The ids of the files, in order; none for a text."""
        return self.file_ids or ((self.file_id,) if self.file_id is not None else ())


class SaveTo(UserFields):
    """The namespace that stores a read's final memory."""


class Webhook(Wire):
    """The address that is called when a background read ends."""

    url: WebUrl


_CALLED_IN_BACKGROUND: JsonDict = {
    "anyOf": [
        {"properties": {"webhook": {"type": "null"}}},
        {"properties": {"background": {"const": True}}, "required": ["background"]},
    ]
}
"""Only a background read has a webhook."""


class LongReadRequest(Wire):
    """``POST /v1/long-read``. Without ``model`` the reader reads; token numbers left out come from its profile.

    ``questions`` share one reading of the document and are answered each.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [*_one_of(question=_SOME_TEXT, questions={"type": "array", "items": _SOME_TEXT})],
            **_CALLED_IN_BACKGROUND,
        }
    )

    model: str | None = None
    question: str | None = Field(default=None, min_length=1)
    questions: tuple[Annotated[str, Field(min_length=1)], ...] | None = Field(
        default=None, min_length=1, max_length=MAX_QUESTIONS
    )
    document: Document
    strategy: Strategy = "memagent"
    options: ReadingOptions = ReadingOptions()
    chunk_tokens: Annotated[int, Field(ge=16, le=1_000_000), Integral] | None = None
    memory_tokens: Annotated[int, Field(ge=16, le=100_000), Integral] | None = None
    max_rereads: Annotated[int, Integral] = Field(default=2, ge=0, le=16)
    max_llm_calls: Annotated[int, Field(ge=1), Integral] | None = None
    deadline_s: float | None = Field(default=None, gt=0)
    background: bool = False
    webhook: Webhook | None = None
    service_tier: Literal["auto", "default", "flex", "priority"] = "auto"
    stream: bool = False
    evidence: bool = False
    save_to_memory: SaveTo | None = None
    metadata: Metadata = Field(default_factory=dict[str, str])

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.question is None) == (self.questions is None):
            raise ValueError("give exactly one of question and questions")
        if self.webhook is not None and not self.background:
            raise ValueError("webhook needs background: true")
        return self

    @property
    def tier(self) -> ServiceTier:
        """The service tier; ``auto`` is the default one."""
        return "default" if self.service_tier == "auto" else self.service_tier

    @property
    def asked(self) -> tuple[str, ...]:
        """All questions, in order."""
        return self.questions or (self.question or "",)


class Progress(Wire):
    """Chunks of the current pass, and passes (the root read is pass 1)."""

    chunks_done: int = 0
    chunks_total: int = 0
    pass_: int = Field(default=1, alias="pass", serialization_alias="pass")
    passes_max: int = 1


class SubQuestion(Wire):
    """One reread."""

    question: str
    answer: str


class Evidence(Wire):
    """A statement of the memory or the answer, and one span of the document that says it.

    A statement with several spans has an entry for each; one with none has ``supported: false`` and no span, unless a
    sentence of the document may say the same in other words: the entry then has ``similar: true``, that span and the
    cosine of the two. ``start`` and ``end`` count characters of the document, or of the text of the file ``file_id``;
    ``chunk`` is the chunk of the read in which the span begins. ``page`` counts from 1, in documents with pages.
    """

    statement: str
    source: EvidenceSource
    supported: bool
    similar: bool = False
    similarity: float | None = None
    chunk: int | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = None
    file_id: str | None = None
    filename: str | None = None
    page: int | None = None


class ReadOutput(Wire):
    """The result of one of several questions."""

    question: str
    output_text: str = ""
    memory: str = ""
    subquestions: tuple[SubQuestion, ...] = ()
    evidence: tuple[Evidence, ...] = ()


class ReadDegradations(Wire):
    """How often the model fell short: empty replies (the memory was kept), cut replies, unusable verdicts."""

    kept: int = 0
    truncated: int = 0
    unusable: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Each kind with how often it happened."""
        return self.model_dump()

    def __add__(self, other: "ReadDegradations") -> "ReadDegradations":
        return ReadDegradations(
            kept=self.kept + other.kept,
            truncated=self.truncated + other.truncated,
            unusable=self.unusable + other.unusable,
        )


class IncompleteDetails(Wire):
    """Why a read ended early with a partial answer."""

    reason: Literal["max_llm_calls", "deadline"]


class ReadUsage(Wire):
    """Usage as the long-read answer gives it."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    llm_calls: int = 0

    @classmethod
    def of(cls, usage: Usage) -> Self:
        """The wire form of a loop's usage."""
        return cls.model_validate(usage, from_attributes=True)


class LongRead(Wire):
    """The state of one read. A read of ``questions`` holds answers and memories in ``outputs``, one for each."""

    id: str
    object: Literal["long_read"] = "long_read"
    status: ReadStatus
    created_at: int
    completed_at: int | None = None
    model: str
    strategy: Strategy
    service_tier: ServiceTier = "default"
    progress: Progress = Progress()
    output_text: str = ""
    memory: str = ""
    subquestions: tuple[SubQuestion, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    outputs: tuple[ReadOutput, ...] = ()
    usage: ReadUsage = ReadUsage()
    degradations: ReadDegradations = ReadDegradations()
    error: ErrorBody | None = None
    incomplete_details: IncompleteDetails | None = None
    metadata: dict[str, str] = Field(default_factory=dict[str, str])

    def ended(self, status: ReadStatus, error: ErrorBody | None = None) -> Self:
        """Return the record of a read that ended now."""
        return self.model_copy(update={"status": status, "completed_at": int(time.time()), "error": error})


class Estimate(Wire):
    """``POST /v1/long-read/estimate``: the most that a read can cost; ``profile`` is the reference of its prompts."""

    profile: str
    chunks: int
    document_tokens: int
    max_llm_calls: int
    max_input_tokens: int
    max_output_tokens: int


EventType: TypeAlias = Literal[
    "long_read.queued",
    "long_read.in_progress",
    "long_read.chunk.completed",
    "long_read.reread.started",
    "long_read.output_text.delta",
    "long_read.completed",
    "long_read.failed",
    "long_read.cancelled",
    "long_read.incomplete",
]


class ReadEvent(Wire):
    """One server-sent event; ``sequence_number`` counts from 0 without gaps.

    ``question_index`` is set in reads of several questions, ``segment`` where segments are read side by side.
    """

    type: EventType
    sequence_number: int
    read: LongRead | None = None
    progress: Progress | None = None
    chunk: int | None = None
    memory: str | None = None
    tokens: int | None = None
    question: str | None = None
    question_index: int | None = None
    segment: int | None = None
    delta: str | None = None
    at: datetime | None = None
