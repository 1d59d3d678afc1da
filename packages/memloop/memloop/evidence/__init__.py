"""Evidence: which spans of the document support a statement, found by matching words and never by asking the model.

The matching is strict on purpose. Words in the document's own wording are found; a paraphrase is not, and is marked as
unsupported. Verified means that the document states it, not that it is true. For a statement without support
:mod:`memloop.evidence.similar` finds a similar sentence, if there is one.
"""

from memloop.evidence.claims import evidence_for
from memloop.evidence.findings import Finding, TextSpan
from memloop.evidence.similar import Similarity, with_similar

__all__ = ["Finding", "Similarity", "TextSpan", "evidence_for", "with_similar"]
