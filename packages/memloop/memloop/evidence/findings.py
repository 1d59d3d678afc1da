"""A statement with its evidence."""

from dataclasses import dataclass

from memloop.evidence.spans import TextSpan
from memloop.wire.long_read import EvidenceSource


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
