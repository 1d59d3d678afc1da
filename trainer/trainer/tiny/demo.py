"""Makes the demo document: the novel's last quarter, held out from training, with facts planted at known places."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from pathlib import Path

from memloop.ports import Splitter
from trainer.tiny.prose import book
from trainer.tiny.world import HOME, PEOPLE, PERSON_CODES, PLACE_CODES, PLACES, Fact, Question, random_value

ONE_HOP, TWO_HOP, DISTRACTORS = 10, 3, 12
LEAST_TOKENS = 66_000
_SENTENCE_END = re.compile(r"(?<=[a-z][.!?])\s+(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Planted:
    """A fact's sentence and its position: `document[start:end] == sentence`, in characters."""

    sentence: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about the document, its gold answer, and the facts it rests on, in the order of the hops."""

    id: str
    question: str
    answer: str
    hops: int
    facts: tuple[Planted, ...]


@dataclass(frozen=True, slots=True)
class DemoDocument:
    """The document and its questions; `distractors` are facts without a question."""

    text: str
    questions: tuple[Asked, ...]
    distractors: tuple[Planted, ...]


@dataclass(frozen=True, slots=True)
class _Cast:
    one_hop: tuple[Fact, ...]
    two_hop: tuple[tuple[Fact, Fact], ...]
    distractors: tuple[Fact, ...]

    def in_order(self, rng: random.Random) -> list[Fact]:
        """Return all facts in document order: of each pair the place's fact first, the home in the second half."""
        loose = [*self.one_hop, *self.distractors]
        rng.shuffle(loose)
        first, second = loose[: len(loose) // 2], loose[len(loose) // 2 :]
        for home, code in self.two_hop:
            first.insert(rng.randrange(len(first) + 1), code)
            second.insert(rng.randrange(len(second) + 1), home)
        return [*first, *second]


def demo_document(splitter: Splitter, *, chunk_tokens: int, seed: int = 7) -> DemoDocument:
    """Return the document of the first seed in which no chunk boundary cuts a planted fact."""
    while True:
        document = _build(random.Random(seed), splitter)
        if all_whole(document, splitter, chunk_tokens):
            return document
        seed += 1


def _build(rng: random.Random, splitter: Splitter) -> DemoDocument:
    cast = _random_cast(rng)
    facts = cast.in_order(rng)
    prose = _held_out_prose(splitter)
    joints = [match.end() for match in _SENTENCE_END.finditer(prose)]
    stretch = len(joints) / len(facts)
    spots = [joints[int((number + 0.15 + 0.7 * rng.random()) * stretch)] for number in range(len(facts))]
    text, placed, at = "", dict[Fact, Planted](), 0
    for fact, spot in zip(facts, spots, strict=True):
        text += prose[at:spot]
        sentence = fact.sentence()
        placed[fact] = Planted(sentence, len(text), len(text) + len(sentence))
        text, at = f"{text}{sentence} ", spot
    text += prose[at:]
    return DemoDocument(text, _questions(cast, placed), tuple(placed[fact] for fact in cast.distractors))


def _random_cast(rng: random.Random) -> _Cast:
    people, places = rng.sample(PEOPLE, ONE_HOP + TWO_HOP + DISTRACTORS), rng.sample(PLACES, TWO_HOP + 4)
    one_hop = tuple(Fact(people[n], a, random_value(rng, a)) for n, a in enumerate(rng.sample(PERSON_CODES, ONE_HOP)))
    homes = [Fact(people[ONE_HOP + n], HOME, places[n]) for n in range(TWO_HOP)]
    codes = [Fact(places[n], a, random_value(rng, a)) for n, a in enumerate(rng.sample(PLACE_CODES, TWO_HOP))]
    others = [*people[ONE_HOP + TWO_HOP :], *places[TWO_HOP:]]
    distractors = (Fact(o, a, random_value(rng, a)) for o in others for a in [_any_code(rng, o)])
    return _Cast(one_hop, tuple(zip(homes, codes, strict=True)), tuple(distractors))


def _any_code(rng: random.Random, entity: str) -> str:
    return rng.choice(PERSON_CODES if entity in PEOPLE else PLACE_CODES)


def _held_out_prose(splitter: Splitter) -> str:
    text = book("held_out").text
    enough = splitter.split(text, chunk_tokens=LEAST_TOKENS)[0].end
    return text[: text.index("\n\n", enough)]


def _questions(cast: _Cast, placed: dict[Fact, Planted]) -> tuple[Asked, ...]:
    one = [
        Asked(f"one-hop-{n}", Question(f.entity, f.attribute).text(), f.value, 1, (placed[f],))
        for n, f in enumerate(cast.one_hop, start=1)
    ]
    two = [
        Asked(f"two-hop-{n}", Question(h.entity, c.attribute, 2).text(), c.value, 2, (placed[h], placed[c]))
        for n, (h, c) in enumerate(cast.two_hop, start=1)
    ]
    return (*one, *two)


def all_whole(document: DemoDocument, splitter: Splitter, chunk_tokens: int) -> bool:
    """Return whether every planted fact stands in one chunk."""
    cuts = [chunk.start for chunk in splitter.split(document.text, chunk_tokens=chunk_tokens)]
    planted = [*document.distractors, *(fact for asked in document.questions for fact in asked.facts)]
    return not any(fact.start < cut < fact.end for fact in planted for cut in cuts)


def write_demo(folder: Path, document: DemoDocument, splitter: Splitter) -> None:
    """Write `document.txt` and `questions.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "document.txt").write_text(document.text, "utf-8")
    data = {
        "document": "document.txt",
        "tokens": splitter.count(document.text),
        "source": "Herman Melville, Moby-Dick (public domain), last quarter; facts of the tiny world planted in it",
        "facts": [{"say": "My locker code is 482.", "ask": "What is my locker code?", "gold": "482"}],
        "short": ["one-hop-1", "two-hop-1"],
        "rereads": True,
        "questions": [
            {
                "id": q.id,
                "question": q.question,
                "answer": q.answer,
                "hops": q.hops,
                "group": "One fact each" if q.hops == 1 else "Two facts each, the second before the first",
                "facts": [_planted(f) for f in q.facts],
            }
            for q in document.questions
        ],
        "distractors": [_planted(fact) for fact in document.distractors],
    }
    (folder / "questions.json").write_text(json.dumps(data, indent=2) + "\n", "utf-8")


def _planted(fact: Planted) -> dict[str, object]:
    return {"sentence": fact.sentence, "start": fact.start, "end": fact.end}
