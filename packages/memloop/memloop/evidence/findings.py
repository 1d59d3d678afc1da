"""A statement with its evidence."""

from dataclasses import dataclass

from memloop.evidence.spans import TextSpan
from memloop.wire.long_read import EvidenceSource


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement and the spans of the document that support it."""

    statement: str
    source: EvidenceSource
    spans: tuple[TextSpan, ...]

    @property
    def supported(self) -> bool:
        """Whether at least one span supports it."""
        return bool(self.spans)
