"""Parses the budget and the questions of a read."""

from pathlib import Path
from typing import Final

from memloop.wire.long_read import MAX_QUESTIONS
from memloop_cli.commands.keys import seconds_of
from memloop_cli.errors import BadInput

_QUESTIONS_CHARS: Final = 1 << 20


def budget_of(text: str | None) -> tuple[int | None, float | None]:
    """Parse a budget: ``300`` calls, or a time such as ``10m``. Raises BadInput."""
    if text is None:
        return None, None
    if text.isdecimal() and 0 < int(text) < 10**9:
        return int(text), None
    if text[-1:] in {"s", "m", "h"} and text[:-1].isdecimal() and int(text[:-1]) > 0:
        return None, float(seconds_of(text))
    raise BadInput("--budget takes a number of calls (300) or a time (90s, 10m, 2h)")


def question_text(question: str) -> str:
    """Return the question. Raises BadInput when it is empty."""
    if not question.strip():
        raise BadInput("the question is empty")
    return question


def questions_in(path: Path) -> tuple[str, ...]:
    """Return a file's questions, one a line. Raises BadInput."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_QUESTIONS_CHARS)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read as text") from error
    questions = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not 0 < len(questions) <= MAX_QUESTIONS:
        raise BadInput(f"{path} holds {len(questions)} questions; a read takes 1 to {MAX_QUESTIONS}, one a line")
    return questions
