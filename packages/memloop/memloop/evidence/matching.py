"""Compares a sentence with a statement by their words, their order, and the words that must match exactly."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, takewhile

from memloop.evidence.clauses import shorter
from memloop.evidence.function_words import WORDS
from memloop.evidence.numerals import NUMBERS
from memloop.evidence.units import OF_TIME, same_unit, unit_named
from memloop.evidence.words import Word, words_of

_COVERAGE = 0.85
_LEAST_ALIKE = 4
_MOST_ENDING = 3
"""Two forms of one word begin with four letters alike; one has at most one more, and the other at most three."""
_LONGEST_ENDING = 4
"""Last words of a statement in signs, which the text may say in another form."""
_A = ("a", "an")
_BEFORE_AN_HOUR = frozenset(
    ("in", "for", "after", "within", "about", "takes", "took", "lasts", "lasted", "every", "than")
)
_LEADS = frozenset(("by", "from", "to"))
_IS = WORDS.copulas | frozenset(("is", "are", "was", "were"))
_ENDS = frozenset(("です", "でした", "である", "だった", "だ", "とする", "となる", "이다", "입니다"))
_BEFORE_THAT = 8
"""Words before *that* in which something denies what follows it, without a clause before them."""
_AND_SO = ("and", "und", "et", "y", "och", "og", "и")
_AROUND = 2
"""Words before and after the matching ones in which a negation still belongs to them."""


@dataclass(frozen=True)
class Claim:
    """What must be found: words in order, and no others in the sentence or clause where it ``is_whole``."""

    words: tuple[Word, ...]
    is_whole: bool = False

    @classmethod
    def of(cls, text: str, *, commas: bool = False) -> "Claim":
        """Build the claim of a text; ``commas`` says that its decimals have commas."""
        return cls(words_of(text, commas=commas))

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """Its words without function words."""
        return tuple(word for word in self.words if word.content)

    @cached_property
    def anchors(self) -> tuple[str, ...]:
        """Its values and names, in order."""
        return tuple(word.norm for word in self.content if word.anchor)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Its names and the values in digits."""
        return tuple(word.norm for word in self.content if word.anchor and not word.spelled)

    @cached_property
    def has_quantities(self) -> bool:
        """Whether a value of it may be found in another unit."""
        return any(word.quantity for word in self.words)

    @cached_property
    def probes(self) -> tuple[str, ...]:
        """What a text that supports it must contain, folded, the longest first: its names, else a stem."""
        ending = self.words[-_LONGEST_ENDING:] if any(word.is_sign for word in self.words) else ()
        names = sorted(
            (word.probe for word in self.content if word.anchor and word.probe and word not in ending),
            key=len,
            reverse=True,
        )
        stems = (word.stem for word in self.content if not word.is_value and not word.maybe)
        return tuple(names) or (max(stems, key=len, default=""),)


def supports(sentence: Sequence[Word], claim: Claim) -> bool:
    """Return whether the sentence supports the claim.

    All anchors are there, values in the claim's order and with the unit that it gives them, and 85 % of the content
    words (all, when they are few); both or none are negated, and both or none in the passive; and where the sentence
    names others too, the claim's anchors stand next to one another in it, so that no number is given to another name.
    """
    if not claim.content or len(sentence) < _COVERAGE * len(claim.content):
        return False
    claim = in_units_of(sentence, claim)
    return _says(sentence, claim) or (
        any(word.is_sign for word in claim.words) and any(_says(each, claim) for each in shorter(sentence, claim.words))
    )


def _says(sentence: Sequence[Word], claim: Claim) -> bool:
    sure = (word.norm for word in claim.content if word.anchor and not word.maybe)
    if not {form for word in sentence for form in (word.norm, word.maybe)}.issuperset(sure):
        return False
    if claim.is_whole:
        cuts = [0, *(at for at, word in enumerate(sentence) if at and word.opens), len(sentence)]
        return any(
            len(clause) == len(claim.words)
            and all(
                word.norm == it.norm and bool(word.unit) == bool(it.unit) and same_unit(word.unit, it.unit)
                for word, it in zip(claim.words, clause, strict=True)
            )
            for clause in (sentence, *(sentence[start:end] for start, end in pairwise(cuts)))
        )
    words, sentence = _as_numbers(claim.words, sentence), _as_numbers(sentence, claim.words)
    claim = Claim(_as_ranges(words, sentence))
    if not set(claim.anchors) <= {word.norm for word in sentence}:
        return False
    if not all(
        any(word.norm == it.norm and same_unit(word.unit, it.unit) for it in sentence)
        for word in claim.words
        if word.unit
    ):
        return False
    if _leads_otherwise(claim.words, sentence):
        return False
    values = [word.norm for word in claim.words if word.is_value]
    if len(aligned(values, [word.norm for word in sentence])) < len(values):
        return False
    places = aligned([word.stem for word in claim.content], [word.stem for word in sentence])
    if len(places) < _COVERAGE * len(claim.content) or _differs(claim.words, sentence):
        return False
    if _passes_a_value(claim.words, sentence, places):
        return False
    behind = [*takewhile(lambda word: not word.opens, sentence[places[-1] + 1 : places[-1] + 1 + _AROUND])]
    region = [
        *(word for word in sentence[max(0, places[0] - _AROUND) : places[0]] if word.norm != "ではなく"),
        *sentence[places[0] : places[-1] + 1],
        *(() if behind and behind[0].norm in WORDS.ands else behind),
    ]
    return (
        not _goes_on(claim.words, behind)
        and not _ends_otherwise(claim.words, sentence[places[-1] :])
        and not _is_denied(sentence[: places[0]])
        and _same_sense(region, claim.words)
        and _anchors_stand_together(sentence, claim)
    )


def in_units_of(sentence: Sequence[Word], claim: Claim) -> Claim:
    """Return the claim with the values that the sentence has in another unit as it has them: 90 min as 1.5 h."""
    if not claim.has_quantities:
        return claim
    theirs = {word.quantity: word for word in sentence if word.quantity}
    equal = {(word.norm, word.unit) for word in theirs.values()}
    turned = tuple(
        replace(word, norm=other.norm, stem=other.stem, unit=other.unit)
        if (other := theirs.get(word.quantity)) and (word.norm, word.unit) not in equal
        else word
        for word in claim.words
    )
    return claim if turned == claim.words else replace(claim, words=turned)


def _as_numbers(words: Sequence[Word], others: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words; one that may be a number is one where the other text has the number and not the word."""
    if not any(word.maybe for word in words):
        return tuple(words)
    norms = {word.norm for word in others}
    turned: list[Word] = []
    hours = {f"{word.norm} {word.unit}" for word in others if word.unit in OF_TIME}
    last = ""
    for word in words:
        unit = unit_named(word.norm) if turned and turned[-1].maybe == "1" else ""
        if unit in OF_TIME and last in _BEFORE_AN_HOUR and f"1 {unit}" in hours:
            turned[-1] = replace(turned[-1].as_number, unit=unit)
        else:
            last = turned[-1].norm if turned else ""
            turned.append(
                word.as_number if word.maybe in norms and word.norm not in norms and word.norm not in _A else word
            )
    return tuple(turned)


def _as_ranges(words: Sequence[Word], sentence: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words without *bis* in ``5 bis 7`` where the sentence has ``5–7``."""
    ranges = {
        (one.norm, two.norm) for one, two in pairwise(sentence) if one.is_value and two.is_value and not two.opens
    }
    return tuple(
        word
        for at, word in enumerate(words)
        if word.norm not in WORDS.between_values
        or not 0 < at < len(words) - 1
        or (words[at - 1].norm, words[at + 1].norm) not in ranges
    )


def _leads_otherwise(claimed: Sequence[Word], sentence: Sequence[Word]) -> bool:
    """Return whether another word before a value changes what it says: *to* 5 for *by* 5, *is* 5 for *by* 5."""
    leads: dict[str, set[str]] = {}
    for before, word in pairwise(sentence):
        if word.is_value:
            leads.setdefault(word.norm, set()).add(before.norm)
    for before, word in pairwise(claimed):
        found = leads.get(word.norm, set()) if word.is_value else set[str]()
        if before.norm in _LEADS and before.norm not in found and not found.isdisjoint(_LEADS):
            return True
        if before.norm in _IS and found and found <= WORDS.before_changes and ":" not in word.norm:
            return True
    return False


def _passes_a_value(claimed: Sequence[Word], sentence: Sequence[Word], places: Sequence[int]) -> bool:
    """Return whether a value of the claim's kind is left out in a clause: *leaves at 9* of *at 7 and arrives at 9*."""
    norms = {word.norm for word in claimed}
    kinds = {word.kind for word in claimed if word.is_value}
    for one, two in pairwise(places) if kinds else ():
        between = [at for at in range(one + 1, two) if sentence[at].is_value and sentence[at].norm not in norms]
        passed = [at for at in between if sentence[at].kind in kinds]
        behind = sentence[passed[-1] + 1 : two + 1] if passed else ()
        begins = [at for at, word in enumerate(behind) if word.opens or word.norm in WORDS.ands]
        said = sum(it.content and it.norm not in WORDS.ands for it in behind[begins[-1] :]) if begins else 0
        # Two friends in "Ann and two friends moved" begin no clause, and one price behind another does
        if said > 1 or (passed and not begins and sentence[passed[-1]].kind):
            return True
    return False


def _differs(claimed: Sequence[Word], sentence: Sequence[Word]) -> bool:
    """Return whether a word of the claim is missing where that may change a value.

    Words may be missing, or others stand for them, in a claim without values. Where there is one, the sentence has
    each word beside it, and no other word in the place of one: ``fell`` for ``rose``, ``gallons`` for ``liters``.
    """
    mine, theirs = _items(claimed), _items(sentence)
    here = aligned([stem for stem, _ in theirs], [stem for stem, _ in mine])
    there = aligned([mine[at][0] for at in here], [stem for stem, _ in theirs])
    has_value = any(word.is_value for word in claimed)
    edges = zip([-1, *here], [*here, len(mine)], [-1, *there], [*there, len(theirs)], strict=True)
    for first, end, from_, to in edges:
        missing = [at for at in range(first + 1, end) if not mine[at][1].asked and not mine[at][0].startswith("[")]
        beside = [word for _, word in theirs[from_ + 1 : to]]
        if from_ < 0:
            beside = beside[-len(missing) - 1 :]
        elif to == len(theirs):
            beside = beside[: len(missing) + 1]
        for at in missing:
            word = mine[at][1]
            by_value = any(near.is_value for _, near in mine[max(0, at - 1) : at + 2])
            is_left_out = (
                word.is_light
                and all(it.is_light for it in beside)
                and not (by_value and word.norm in WORDS.before_names)
            )
            if is_left_out or any(is_other_form(word, other) for other in beside):
                continue
            if (has_value and (beside or by_value)) or _counts(word) or any(map(_counts, beside)):
                return True
    return False


def _items(words: Sequence[Word]) -> list[tuple[str, Word]]:
    """Return the stems of the words that say something, and the units of values as if they were words."""
    return [
        item
        for word in words
        if word.content or word.is_light
        for item in ((word.stem, word), (f"[{word.unit}]", word))
        if item[0] != "[]"
    ]


def is_other_form(word: Word, other: Word) -> bool:
    """Return whether two words may be forms of one: *reached*, *reaches*."""
    if word.is_value or other.is_value:
        return False
    pairs = zip(word.norm, other.norm, strict=False)
    alike = next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(word.norm), len(other.norm)))
    endings = sorted((len(word.norm) - alike, len(other.norm) - alike))
    return alike >= _LEAST_ALIKE and endings[0] <= 1 and endings[1] <= _MOST_ENDING


def _counts(word: Word) -> bool:
    """Return whether a word is a number or may be one: ``first``, but no article."""
    return word.is_value or (word.maybe != "" and word.norm not in (*_A, *NUMBERS.one))


def _goes_on(claimed: Sequence[Word], behind: Sequence[Word]) -> bool:
    """Return whether a claim ends in a value and *is*, and the sentence goes on: 50円です, and 50円上がった."""
    ends = len(claimed) > 1 and claimed[-2].is_value and claimed[-1].norm in _ENDS
    return ends and bool(behind) and behind[0].is_sign and behind[0].content and behind[0].norm != "で"


def _ends_otherwise(claimed: Sequence[Word], behind: Sequence[Word]) -> bool:
    """Return whether a Korean verb, the first of the words, has another ending than in the claim."""
    mine = [*takewhile(lambda word: not word.content, reversed(claimed))]
    if not mine or mine[0].norm < "가":
        return False
    first = 1 + (behind[0].is_value and len(behind) > 1 and behind[1].norm >= "가")
    ending = "".join(word.norm for word in (*behind[1:first], *takewhile(lambda it: it.is_joined, behind[first:])))
    return ending not in ("", "".join(word.norm for word in reversed(mine)))


def _is_denied(before: Sequence[Word]) -> bool:
    """Return whether the words before a statement say that it is not so: *it is not true that the*."""
    near = range(max(0, len(before) - _AROUND - 1), len(before))
    return any(
        word.negates or word.norm in WORDS.denials
        for that in near
        if before[that].norm in WORDS.thats
        for word in takewhile(lambda it: it.norm not in _AND_SO, before[max(0, that - _BEFORE_THAT) : that][::-1])
    )


def _same_sense(region: Sequence[Word], claimed: Sequence[Word]) -> bool:
    def sense(words: Sequence[Word]) -> tuple[bool, bool]:
        passive = any(word.norm == "by" and not after.is_value for word, after in pairwise(words))
        return any(word.negates for word in words), passive

    return sense(region) == sense(claimed)


def _anchors_stand_together(sentence: Sequence[Word], claim: Claim) -> bool:
    wanted = list(claim.anchors)
    norms = {word.norm for word in claim.words}
    # Numbers in words are anchors where the claim has one of them: it may stand with another name
    counts = any(word.spelled and word.norm in wanted for word in sentence)
    named = [
        word.norm
        for word in sentence
        if (word.anchor and word.content and (counts or not word.spelled)) or word.norm in wanted
    ]
    if all(name in norms for name in named):
        return True
    runs = range(len(named) - len(wanted) + 1)
    return any(named[start : start + len(wanted)] == wanted for start in runs)


def aligned(wanted: Sequence[str], found: Sequence[str]) -> list[int]:
    """Return the places in ``found`` of a longest common subsequence of both."""
    rows = [[0] * (len(found) + 1) for _ in range(len(wanted) + 1)]
    for i in range(len(wanted) - 1, -1, -1):
        for j in range(len(found) - 1, -1, -1):
            same = wanted[i] == found[j]
            rows[i][j] = rows[i + 1][j + 1] + 1 if same else max(rows[i + 1][j], rows[i][j + 1])
    places: list[int] = []
    i = j = 0
    while i < len(wanted) and j < len(found):
        if wanted[i] == found[j]:
            places.append(j)
            i, j = i + 1, j + 1
        elif rows[i + 1][j] >= rows[i][j + 1]:
            i += 1
        else:
            j += 1
    return places
