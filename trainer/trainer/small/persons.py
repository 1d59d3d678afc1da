"""Turns a sentence in the first person to another person: a statement into a note, an answer or a question.

The kinds of facts are written once, in the first person. Everything else that is said of them follows by these rules,
so that a note is the sentence that was told, turned to the third person.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_SECOND_VERB: Final = re.compile(
    r"(?<=, and )(?:has|is|was|wants|keeps)\b|(?<=[\w%] and )(?:has|is|was|doesn't|hasn't|wants|keeps|reads|calls|rides"
    r"|writes|plays|goes|works|lives|eats|drinks|takes|needs|likes|sleeps)\b"
)
"""A verb whose subject is likely the sentence's first."""
_NAME: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
_ADVERBS: Final = frozenset(
    [
        "really",
        "also",
        "always",
        "never",
        "just",
        "usually",
        "normally",
        "still",
        "only",
        "mostly",
        "finally",
        "recently",
        "badly",
        "often",
        "currently",
        "already",
        "once",
        "hardly",
        "now",
        "even",
        "gladly",
        "once",
    ]
)
_PAST: Final = frozenset(
    [
        "was",
        "had",
        "did",
        "went",
        "got",
        "bought",
        "grew",
        "spent",
        "came",
        "fell",
        "won",
        "lost",
        "met",
        "made",
        "took",
        "gave",
        "sold",
        "broke",
        "quit",
        "taught",
        "began",
        "ran",
        "saw",
        "said",
        "left",
        "became",
        "found",
        "thought",
        "felt",
        "told",
        "knew",
        "wrote",
        "read",
        "rode",
        "flew",
        "drove",
        "woke",
        "led",
        "sang",
        "hit",
        "cut",
        "put",
        "paid",
        "built",
        "swam",
        "sent",
        "spoke",
        "kept",
        "held",
        "heard",
        "lent",
        "sat",
        "stood",
        "won't",
        "can't",
        "couldn't",
        "could",
        "can",
        "may",
        "might",
        "must",
        "should",
        "would",
        "will",
        "won",
        "hurt",
        "used",
    ]
)
_IRREGULAR: Final = {"am": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't", "go": "goes"}
_ENDINGS: Final = ("s", "sh", "ch", "x", "z", "o")
_WORD: Final = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?|[^A-Za-z]+")
_SHORT: Final = {"I'm": "is", "I've": "has", "I'd": "would", "I'll": "will"}


@dataclass(frozen=True, slots=True)
class Person:
    """Who a sentence speaks of. ``again`` are the subject, possessive, object and reflexive once it was named."""

    name: str
    again: tuple[str, str, str, str]
    second_mention: str = ""

    @property
    def subject_again(self) -> str:
        """How the subject is named from the second time on; its verb keeps the third person singular."""
        return self.second_mention or self.again[0]


USER: Final = Person("the user", ("they", "their", "them", "themselves"), "the user")
_PRONOUNS: Final = {"she": ("she", "her", "her", "herself"), "he": ("he", "his", "him", "himself")}


def somebody(name: str, pronoun: str) -> Person:
    """Return the person with a name (``my sister Marta``) and a pronoun (``she`` or ``he``)."""
    return Person(name, _PRONOUNS[pronoun])


def only_pronoun(pronoun: str) -> Person:
    """Return the person whom the sentence before has named: the pronoun stands in every place."""
    return Person("", _PRONOUNS[pronoun])


def told_of(text: str, person: Person) -> str:
    """Turn a sentence in the first person to one about the person: ``I live`` to ``the user lives``."""
    named, verb_next = not person.name, False
    parts: list[str] = []
    for word in _WORD.findall(text):
        if word == "I" or word in _SHORT:
            subject = person.subject_again if named else person.name
            parts.append(subject + (f" {_SHORT[word]}" if word in _SHORT else ""))
            named, verb_next = True, word == "I"
        elif word in {"my", "our", "My", "Our"}:
            parts.append(person.again[1] if named else f"{person.name}'s")
            named = True
        elif word in {"me", "us"}:
            parts.append(person.again[2] if named else person.name)
            named = True
        elif word in {"myself", "mine"}:
            parts.append(person.again[3] if word == "myself" else f"{person.again[1]} own")
        elif verb_next and word[0].isalpha() and word not in _ADVERBS:
            parts.append(_third(word))
            verb_next = False
        else:
            parts.append(word)
    return "".join(parts)


def asked_of(question: str, name: str) -> str:
    """Turn a question in the first person to one about somebody: ``do I own`` to ``does Marta own``.

    What belongs to somebody named before is theirs: ``Where does Marta park their car?``
    """
    turned = re.sub(
        r"\b(am|do|have|don't|haven't) I\b", lambda found: f"{_IRREGULAR[found[1].lower()]} {_NAME}", question
    )
    turned = re.sub(r"\b(Am|Do|Have) I\b", lambda found: f"{_IRREGULAR[found[1].lower()].title()} {_NAME}", turned)
    turned = re.sub(r"\bI've\b", f"{_NAME} has", turned)
    turned = re.sub(r"\bI'm\b", f"{_NAME} is", turned)
    turned = re.sub(r"\bI\b(?= (am|have|do)\b)(?: \w+)?", lambda found: f"{_NAME} {_IRREGULAR[found[1]]}", turned)
    turned = re.sub(r"\b([Mm]y|[Oo]ur|mine)\b", f"{_NAME}'s", turned)
    first, named, rest = re.sub(r"\b(I|me)\b", _NAME, turned).partition(_NAME)
    return first + named.replace(_NAME, name) + rest.replace(f"{_NAME}'s", "their").replace(_NAME, name)


def told_to_user(note: str) -> str:
    """Turn a note to an answer: ``The user's sister lives`` to ``Your sister lives``, ``the user lives`` to ``you
    live``.
    """
    turned = re.sub(r"\b[Tt]he user's\b", "your", note)
    turned = re.sub(r"\b[Tt]he user\b(( \w+)?) (\w+(?:'t)?)", _you, turned)
    turned = re.sub(r"\b[Tt]he user\b", "you", turned)
    if note.startswith("The user "):
        turned = _SECOND_VERB.sub(lambda verb: _base(verb[0]), turned)
    for theirs, yours in (("themselves", "yourself"), ("them", "you"), ("their", "your")):
        if "your" in turned or "you" in turned:
            turned = re.sub(rf"\b{theirs}\b", yours, turned)
    return sentence(turned)


def sentence(text: str) -> str:
    """Return the text with a capital and a full stop."""
    held = text.strip()
    return held[:1].upper() + held[1:] + ("" if held.endswith((".", "!", "?")) else ".")


def _you(found: re.Match[str]) -> str:
    adverb, verb = found[1].strip(), found[3]
    if not adverb or adverb not in _ADVERBS:
        return f"you {_base(adverb)} {verb}" if adverb else f"you {_base(verb)}"
    return f"you {adverb} {_base(verb)}"


def _third(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb in _PAST or (verb.endswith("ed") and verb not in {"need", "feed", "speed"}):
        return verb
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(_ENDINGS) else f"{verb}s"


def _base(verb: str) -> str:
    if verb[0].isupper():  # not a verb: the user was the object, and a name follows
        return verb
    known = {"is": "are", "was": "were", "has": "have", "does": "do", "doesn't": "don't", "hasn't": "haven't"}
    if verb in known:
        return known[verb]
    if verb in _PAST or verb.endswith(("ed", "ss")) or not verb.endswith("s"):
        return verb
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    stem = verb[:-2] if verb.endswith("es") else verb[:-1]
    return stem if verb.endswith("es") and stem.endswith(("sh", "ch", "x", "z", "o", "ss")) else verb[:-1]
