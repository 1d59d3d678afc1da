"""How each benchmark has an answer judged, by the kind of its question. The texts are ours, after the published rules.

Sources: Wu et al., "LongMemEval" (arXiv 2410.10813), its judge for each type of question; Chhikara et al., "Mem0"
(arXiv 2504.19413), the generous judge that memory systems use on LoCoMo; Chen et al., "HaluMem" (arXiv 2511.03506),
correct, hallucinated and omitted answers.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluation.memory.prompts import ACCURACY, ADVICE_SYSTEM, ANSWER_SYSTEM, EXTRACTION, UPDATE
from evaluation.memory.records import Verdict
from trainer.data.dialogues.formats import Format

PREFERENCE: Final = "single-session-preference"
ABSTENTION: Final = "abstention"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a judge is told, the verdicts it may give, and the system message that the answering model gets."""

    task: str
    verdicts: tuple[Verdict, ...] = ("correct", "wrong")
    answer_system: str = ANSWER_SYSTEM


_GIVEN = '"answer" was given to "question"; "reference" is the true answer. '
_COMPLETE = """\
The verdict is correct when the answer holds what the reference says, in whatever words, or every step that leads to \
it; more detail that does not contradict it does no harm. It is wrong when the answer holds only a part of what is \
asked for, contradicts the reference, or says that it does not know."""
_TEMPORAL = """ \
A number of days, weeks, months or years that is off by one is still correct: 19 days where the reference has 18."""
_UPDATED = """\
The verdict is correct when the answer gives the reference as the present state; it may tell the earlier state \
beside it. It is wrong when it gives an earlier state as the present one, or misses the reference."""
_PREFERENCE = """\
"answer" was given to "question"; "reference" describes what an answer that suits this person would use. The verdict \
is correct when the answer recalls what is known of the person and makes right use of it; it need not meet every \
point of the description. It is wrong when it ignores or contradicts what is known of the person."""
_ABSTENTION = """\
"question" cannot be answered from what was said; "reference" explains why. The verdict is correct when "answer" \
recognises that: it says that it does not know, that the information is incomplete, or that something else was told \
but not this. It is wrong when it answers as if it knew."""
_GENEROUS = (
    _GIVEN
    + """\
Be generous. The verdict is correct when the answer names the same thing as the reference, however long or short it \
is. A time is correct when it means the same day, month or year, written in any way, also relative ("last Tuesday"). \
The verdict is wrong when the answer names something else, or says that it does not know."""
)
_HALLUCINATION = (
    _GIVEN
    + """\
The verdict is correct when the answer says what the reference says and nothing against it. It is missed when the \
answer leaves out what is asked for, or says that it does not know, without stating anything false. It is wrong when \
the answer states something that contradicts the reference, or makes something up. Where the reference itself says \
that this cannot be known, an answer that says so is correct."""
)

_LONGMEMEVAL: Final[Mapping[str, Rule]] = {
    "temporal-reasoning": Rule(_GIVEN + _COMPLETE + _TEMPORAL),
    "knowledge-update": Rule(_GIVEN + _UPDATED),
    PREFERENCE: Rule(_PREFERENCE, answer_system=ADVICE_SYSTEM),
    ABSTENTION: Rule(_ABSTENTION),
}
_OTHERWISE: Final[Mapping[Format, Rule]] = {
    "locomo": Rule(_GENEROUS),
    "longmemeval": Rule(_GIVEN + _COMPLETE),
    "halumem": Rule(_HALLUCINATION, ("correct", "wrong", "missed")),
}


def rule_of(format_: Format, categories: Sequence[str]) -> Rule:
    """Return the rule for a question of these categories: the last one's."""
    of_category = _LONGMEMEVAL if format_ == "longmemeval" else {}
    return of_category.get(categories[-1], _OTHERWISE[format_])


def digest_of(format_: Format) -> str:
    """Return a digest of all that judges this format's records: results under other rules cannot be set beside it."""
    rules = [*(_LONGMEMEVAL.values() if format_ == "longmemeval" else ()), _OTHERWISE[format_]]
    texts = [*map(repr, rules), EXTRACTION, UPDATE, ACCURACY]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
