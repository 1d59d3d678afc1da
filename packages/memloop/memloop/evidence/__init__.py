"""Evidence: which spans of the document support a statement, found by matching words and never by asking the model.

The matching is strict on purpose. Words in the document's own wording are found; a paraphrase is not, and is marked as
unsupported. Verified means that the document says it, not that it is true.
"""

from memloop.evidence.claims import evidence_for
from memloop.evidence.findings import Finding
from memloop.evidence.spans import TextSpan

__all__ = ["Finding", "TextSpan", "evidence_for"]
