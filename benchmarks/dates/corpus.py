"""The made-up sentences: 300 whose days are known, and 1,000 that name no time."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

_FOLDER = Path(__file__).parent
_WORDS = {
    "do": ("sing", "cook", "paint the wall", "read", "dance", "walk the dog", "learn French", "play chess", "sleep"),
    "who": ("Ben", "my sister", "Carla", "the neighbour", "Omar", "Grandma", "Yuki", "my boss"),
    "thing": ("lamp", "guitar", "blue kettle", "tent", "sofa", "bicycle", "cake", "camera", "rug"),
    "n": ("20", "45", "12", "99", "31", "64"),
    "m": ("4", "5", "7", "8", "9"),
}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence, when it was said, and its days: those that must be inside and those that may be; None for no time."""

    text: str
    said_at: datetime
    days: tuple[tuple[date, date], tuple[date, date]] | None

    def is_right(self, found: list[tuple[date, date]]) -> bool:
        """Return whether one of the found spans of days is right; where there is no time, whether none was found."""
        if self.days is None:
            return not found
        (first, last), (earliest, latest) = self.days
        return any(earliest <= start <= first and last <= end <= latest for start, end in found)


def phrases() -> Iterator[Phrase]:
    """Yield the sentences of ``phrases.txt``."""
    said_at = datetime.max.replace(tzinfo=UTC)
    for line in _lines("phrases.txt"):
        if line.startswith("@ "):
            said_at = datetime.fromisoformat(line[2:]).replace(tzinfo=UTC)
            continue
        text, inside, *within = line.split(" | ")
        yield Phrase(text, said_at, None if inside == "-" else (_span(inside), _span(within[0] if within else inside)))


def undated(number: int = 1000, *, seed: int = 7) -> list[str]:
    """Return so many different sentences of ``undated.txt``, the same for the same seed."""
    chance = random.Random(seed)
    made: dict[str, None] = {}
    while len(made) < number:
        for line in _lines("undated.txt"):
            made[line.format(**{name: chance.choice(words) for name, words in _WORDS.items()})] = None
    return list(made)[:number]


def _lines(name: str) -> list[str]:
    return [line for line in (_FOLDER / name).read_text().splitlines() if line and not line.startswith("#")]


def _span(text: str) -> tuple[date, date]:
    first, _, last = text.partition("/")
    return date.fromisoformat(first), date.fromisoformat(last or first)
