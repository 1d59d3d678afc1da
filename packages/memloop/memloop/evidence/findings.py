"""A statement with its evidence."""

from dataclasses import dataclass

from memloop.wire.long_read import EvidenceSource


@dataclass(frozen=True, slots=True)
class TextSpan:
    """``text`` stands at ``start`` to ``end``, in characters. ``chunk`` is where it begins, in a document of chunks."""

    start: int
    end: int
    text: str
    chunk: int = 0


@dataclass(frozen=True, slots=True)
class SimilarSpan:
    """A sentence that may say the same in other words, and the cosine of the two embeddings."""

    span: TextSpan
    similarity: float


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement and the spans of the document that support it; without any, perhaps a similar one."""

    statement: str
    source: EvidenceSource
    spans: tuple[TextSpan, ...]
    similar: SimilarSpan | None = None

    @property
    def supported(self) -> bool:
        """Whether at least one span supports it."""
        return bool(self.spans)
