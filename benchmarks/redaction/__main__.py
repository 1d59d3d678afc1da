"""Measures redaction: secrets found by form, false alarms, time. Run: ``make bench-redaction``.

Each published form is made anew ten times; the plain sentences are those of the tests. Times are the process's own, for
2,000 characters at once and the kinds that are redacted by default. The last line is one JSON object.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import orjson
from rich.console import Console

from gateway.policy.redaction.finding import Detector, find_by_rules
from memloop.wire.policy import SECRETS
from tests.gateway.plain_sentences import plain_sentences
from tests.gateway.secret_formats import FORMS, Format, formats

ROUNDS: Final = 10
PART_CHARS: Final = 2_000
KINDS: Final = frozenset(("card", *SECRETS))
_ROOT: Final = Path(__file__).parents[2]


def is_found(case: Format, find: Detector) -> bool:
    """Return whether at most two characters of the secret stay."""
    start = case.text.index(case.value)
    end = start + len(case.value)
    hidden = (min(each.end, end) - max(each.start, start) for each in find(case.text, KINDS))
    return end - start - sum(chars for chars in hidden if chars > 0) <= 2


def us_per_kb(texts: Sequence[str], find: Callable[[str], object]) -> float:
    """Return the CPU time for 1,000 characters, the least of three rounds."""

    def once() -> float:
        begun = time.process_time()
        for text in texts:
            find(text)
        return time.process_time() - begun

    return min(once() for _ in range(3)) / sum(map(len, texts)) * 1e9


def parts(text: str) -> list[str]:
    """Return the text in parts of 2,000 characters, at most 200 of them."""
    return [text[start : start + PART_CHARS] for start in range(0, min(len(text), 200 * PART_CHARS), PART_CHARS)]


def measured(find: Detector) -> dict[str, float]:
    """Measure one way of finding."""
    cases = [case for seed in range(ROUNDS) for case in formats(seed)]
    plain = plain_sentences()
    prose = parts((_ROOT / "trainer/trainer/tiny/prose/moby_dick.txt").read_text())
    pages = parts("\n".join(path.read_text() for path in sorted((_ROOT / "docs").rglob("*.md"))))
    return {
        "forms": len(FORMS),
        "recall": round(sum(is_found(case, find) for case in cases) / len(cases), 4),
        "sentences": len(plain),
        "false_alarms": round(sum(bool(find(text, KINDS)) for text in plain) / len(plain), 4),
        "us_per_kb_of_prose": round(us_per_kb(prose, lambda text: find(text, KINDS)), 1),
        "us_per_kb_of_documentation": round(us_per_kb(pages, lambda text: find(text, KINDS)), 1),
    }


def main() -> None:
    """Measure, and print."""
    found = measured(find_by_rules)
    console = Console()
    for name, value in found.items():
        console.print(f"{name.replace('_', ' ')}: {value}")
    console.print(orjson.dumps({"benchmark": "redaction", **found}).decode(), soft_wrap=True, highlight=False)


if __name__ == "__main__":
    main()
