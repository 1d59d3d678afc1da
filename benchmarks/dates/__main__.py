"""Measures how many times in made-up sentences are read right, and false alarms. Run: ``make bench-dates``.

The last line is one JSON object.
"""

import time

import orjson
from rich.console import Console

from benchmarks.dates.corpus import phrases, undated
from memory_store.times.reading import times_in


def main() -> None:
    """Measure, print each wrong sentence, and the totals."""
    console = Console()
    cases, plain = list(phrases()), undated()
    right = 0
    times_in("7 May 2023", cases[0].said_at)  # loads the library
    begun = time.process_time()
    for case in cases:
        found = [(one.start, one.end) for one in times_in(case.text, case.said_at)]
        right += case.is_right(found)
        if not case.is_right(found):
            console.print(f"wrong: {case.text} ({case.said_at.date()}): {found}", highlight=False)
    middle = time.process_time()
    alarms = [text for text in plain if times_in(text, cases[0].said_at)]
    ended = time.process_time()
    for text in alarms:
        console.print(f"false: {text}", highlight=False)
    totals = {
        "benchmark": "dates",
        "phrases": len(cases),
        "right": right,
        "sentences_without_time": len(plain),
        "false_windows": len(alarms),
        "ms_per_phrase": round((middle - begun) / len(cases) * 1e3, 3),
        "ms_per_sentence_without_time": round((ended - middle) / len(plain) * 1e3, 3),
    }
    console.print(orjson.dumps(totals).decode(), soft_wrap=True, highlight=False)


if __name__ == "__main__":
    main()
