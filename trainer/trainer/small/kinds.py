"""Loads the kinds of facts and the words around them, and splits them into parts that never mix.

A kind, a wording and a line to ignore each belong to one part: ``train``, ``reward`` (for reinforcement alone) or
``held_out``. The part follows from the seed in this file and the text itself, so that new data never moves old data to
another part; a line that stands in the data twice is not held out. Of a slot's values the last ones are held out, and
may be another slot's.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Final, Literal, Self

Part = Literal["train", "reward", "held_out"]
SEED: Final = "english-1"
_FOLDER: Final = Path(__file__).parent / "english"
_CHOICE: Final = re.compile(r"\[([^\[\]]*)\]")
_SLOT: Final = re.compile(r"\{([a-z_]+?)(\d?)\}")
_ARTICLE: Final = re.compile(r"\ba(?= [aeio](?!ne\b))")
_OF_HUNDRED_HELD_OUT, _OF_HUNDRED_REWARD = 14, 12


def part_of(text: str) -> Part:
    """Return the part that a text belongs to."""
    place = int.from_bytes(hashlib.sha256(f"{SEED}/{text}".encode()).digest()[:4]) % 100
    if place < _OF_HUNDRED_HELD_OUT:
        return "held_out"
    return "reward" if place < _OF_HUNDRED_HELD_OUT + _OF_HUNDRED_REWARD else "train"


def wordings(pattern: str) -> list[str]:
    """Return every way to choose among a pattern's ``[a|b]``, in order."""
    pieces = _CHOICE.split(pattern)
    options = [piece.split("|") if number % 2 else [piece] for number, piece in enumerate(pieces)]
    return [" ".join("".join(chosen).split()) for chosen in itertools.product(*options)]


@cache
def _ways(lines: tuple[str, ...], held_out: bool | None) -> list[str]:
    every = [wording for line in lines for wording in wordings(line)]
    if held_out is None:
        return every
    return [way for way in every if (part_of(f"way {way}") == "held_out") is held_out] or every


@dataclass(frozen=True, slots=True)
class Said:
    """A statement with its slots filled, and its note where the kind words it otherwise."""

    text: str
    note: str | None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of facts: the ways to say it, to say that it changed, and to ask for it."""

    name: str
    key: str
    gold: str
    say: tuple[str, ...]
    new: tuple[str, ...]
    ask: tuple[str, ...]
    one: bool = False
    own: bool = False

    @classmethod
    def of(cls, name: str, fields: dict[str, object]) -> Self:
        """Read a kind as its file holds it."""
        lines = {
            key: tuple(line for text in (fields, *_more(name)) for line in str(text.get(key, "")).strip().splitlines())
            for key in ("say", "new", "ask")
        }
        return cls(
            name,
            str(fields["key"]),
            str(fields["gold"]),
            **lines,
            one=bool(fields.get("one")),
            own=bool(fields.get("own")),
        )

    @property
    def part(self) -> Part:
        """The part of the kind."""
        return part_of(f"kind {self.name}")

    def ways(self, lines: tuple[str, ...], *, held_out: bool | None) -> list[str]:
        """Return the wordings of the lines that are held out or not; with None, and where none is left, all."""
        return _ways(lines, held_out)


@dataclass(frozen=True)
class English:
    """All that the samples are made of, for one part.

    ``words_held_out`` draws wordings and values never trained on; ``section_words`` are lengths of prose to read.
    """

    part: Part
    words_held_out: bool = False
    kinds_of: tuple[Part, ...] = field(default=())
    replies_file: Path | None = None
    section_words: tuple[int, ...] = (40, 80, 130, 180)

    @cached_property
    def kinds(self) -> list[Kind]:
        """The kinds of this part, or of the parts that ``kinds_of`` names."""
        return [kind for kind in every_kind() if kind.part in (self.kinds_of or (self.part,))]

    @cached_property
    def readable(self) -> list[Kind]:
        """The kinds that can be said of anybody in a text, without a note in other words."""
        return [
            kind
            for kind in self.kinds
            if not kind.own and any("=>" not in way for way in kind.ways(kind.say, held_out=self.words_held_out))
        ]

    @cached_property
    def ignored(self) -> dict[str, list[str]]:
        """Lines to ignore, by sort."""
        return {sort: self._mine(lines) for sort, lines in _lines("ignored.toml").items()}

    @cached_property
    def general(self) -> list[str]:
        """Questions and tasks that no note about the user matters to."""
        return self._mine((_FOLDER / "general.txt").read_text("utf-8").splitlines())

    @cached_property
    def talk(self) -> dict[str, list[str]]:
        """The words around facts, by their place; a place whose lines are all of another part keeps them."""
        return {place: self._mine(lines) or lines for place, lines in _lines("talk.toml").items()}

    @cached_property
    def values(self) -> dict[str, list[str]]:
        """The values of each slot: five of six to train, the last sixth where words are held out."""
        return {slot: self._share(text.split(", ")) for slot, text in _table("values.toml").items()}

    @cached_property
    def replies(self) -> list[tuple[str, str]]:
        """Lines of general chat and the base's replies to them: of ``replies_file``, or the few of the data."""
        packaged = (_FOLDER / "base_replies.jsonl").read_text("utf-8")
        given = self.replies_file.read_text("utf-8") if self.replies_file else ""
        rows = map(json.loads, (given or packaged).splitlines())
        return [(str(row["prompt"]), str(row["reply"])) for row in rows]

    @cached_property
    def relatives(self) -> dict[str, list[str]]:
        """What people around the user are called, by their pronoun."""
        return {pronoun: text.split(", ") for pronoun, text in _table("relations.toml").items()}

    def fill(self, text: str, chosen: dict[str, str]) -> str:
        """Fill the slots from ``chosen``, and put ``an`` where a vowel follows."""
        filled = _SLOT.sub(lambda slot: chosen[slot[1] + slot[2]], text)
        return _ARTICLE.sub("an", filled)

    def draw_values(self, kind: Kind, rng: random.Random) -> dict[str, str]:
        """Choose a value for every slot of a kind."""
        texts = (kind.gold, kind.key, *kind.say, *kind.new, *kind.ask)
        slots = sorted({slot[1] + slot[2] for text in texts for slot in _SLOT.finditer(text)})
        return {slot: rng.choice(self.values[slot.rstrip("0123456789")]) for slot in slots if slot not in DATES}

    def state(self, kind: Kind, values: dict[str, str], rng: random.Random, *, changed: bool = False) -> Said:
        """Say a fact of the kind in one way of this part."""
        lines = kind.new if changed and kind.new else kind.say
        way = rng.choice(kind.ways(lines, held_out=self.words_held_out))
        text, _, note = way.partition(" => ")
        return Said(self.fill(text, values), self.fill(note, values) if note else None)

    def _mine(self, lines: list[str]) -> list[str]:
        mine = _of_part(lines, self.part)
        return [way for way in mine if heard(way) not in _shown()] if self.part == "held_out" else mine

    def _share(self, values: list[str]) -> list[str]:
        kept = len(values) - max(2, len(values) // 6)
        return values[kept:] if self.words_held_out else values[:kept]


DATES: Final = frozenset({"when", "ago"})
"""Slots that the turn's date fills."""


def every_kind() -> Sequence[Kind]:
    """Return the kinds of all files, in order."""
    return _KINDS


def heard(text: str) -> str:
    """Return the text without its case and punctuation: two lines that sound alike are one."""
    return " ".join(re.sub(r"[^\w ]", " ", text.lower()).split())


@cache
def _shown() -> frozenset[str]:
    """What training or reinforcement shows of the lines to ignore and of the general ones."""
    lists = (*_lines("ignored.toml").values(), (_FOLDER / "general.txt").read_text("utf-8").splitlines())
    parts: tuple[Part, ...] = ("train", "reward")
    return frozenset(heard(way) for lines in lists for part in parts for way in _of_part(lines, part))


def _of_part(lines: list[str], part: Part) -> list[str]:
    return [way for line in lines if part_of(f"line {line}") == part for way in wordings(line)]


def _table(name: str) -> dict[str, str]:
    return tomllib.loads((_FOLDER / name).read_text("utf-8"))


def _lines(name: str) -> dict[str, list[str]]:
    return {place: text.strip("\n").splitlines() for place, text in _table(name).items()}


_MORE: Final[tuple[dict[str, dict[str, object]], ...]] = tuple(
    tomllib.loads(file.read_text("utf-8")) for file in sorted((_FOLDER / "wordings").glob("*.toml"))
)


def _more(name: str) -> list[dict[str, object]]:
    """Return what the files of wordings add to a kind."""
    return [file[name] for file in _MORE if name in file]


_KINDS: Final = tuple(
    Kind.of(name, fields)
    for file in sorted((_FOLDER / "kinds").glob("*.toml"))
    for name, fields in tomllib.loads(file.read_text("utf-8")).items()
)
