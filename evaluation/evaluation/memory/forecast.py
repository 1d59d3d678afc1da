"""Estimates what a judged run costs before it starts: calls, tokens, dollars.

Tokens are estimated from the data's characters. Writes of the row *ours* are counted once over their turns: how often
the writer's prompt repeats depends on its profile.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evaluation.memory.gateway_memory import words_of
from evaluation.memory.records import NO_TOKENS, Row, Tokens
from evaluation.memory.scores import Prices
from trainer.data.dialogues.dialogue import Conversation, Session

_CHARS_PER_TOKEN: Final = 4
_PROMPT_TOKENS: Final = 200
"""Instructions and question of an answer or a judgement."""
_NOTE_TOKENS: Final = 40
_REPLY_TOKENS: Final = 60


@dataclass(frozen=True, slots=True)
class Forecast:
    """Calls of the models and their estimated tokens, answers and judgements together."""

    calls: int = 0
    tokens: Tokens = NO_TOKENS

    def __add__(self, other: "Forecast") -> "Forecast":
        return Forecast(self.calls + other.calls, self.tokens + other.tokens)


def forecast(
    talks: Iterable[Conversation], rows: Sequence[Row], *, seeds: int, top_k: int, judged: bool = True
) -> Forecast:
    """Estimate a run over these conversations from its start; what is kept already costs nothing again."""
    return sum((_row(row, talk, seeds, top_k, judged=judged) for talk in talks for row in rows), Forecast())


def sentence(expected: Forecast, prices: Prices) -> str:
    """Format the estimate in one line, with dollars where prices are given."""
    cost = prices.of(expected.tokens)
    return (
        f"A whole run makes about {expected.calls:,} calls with {expected.tokens.input:,} input and "
        f"{expected.tokens.output:,} output tokens" + (f", about ${cost:,.2f}" if cost is not None else "") + "."
    )


def _row(row: Row, talk: Conversation, seeds: int, top_k: int, *, judged: bool) -> Forecast:
    sizes = [_tokens(session) for session in talk.sessions]
    answers = (
        _call(_PROMPT_TOKENS + _notes(row, sizes[: question.after_sessions], top_k)) for question in talk.questions
    )
    judgements = (_call(_PROMPT_TOKENS) for _ in talk.questions if judged)
    once = sum((*answers, *judgements), Forecast())
    asked = sum([once] * seeds, Forecast())
    return asked + sum(map(_written, talk.sessions, sizes), Forecast()) if row == "ours" else asked


def _notes(row: Row, sizes: Sequence[int], top_k: int) -> int:
    return {"off": 0, "full": sum(sizes)}.get(row, top_k * _NOTE_TOKENS)


def _written(session: Session, size: int) -> Forecast:
    """Estimate a session's writes, its graded points, and as many checked memories, which show the whole session."""
    points = len(session.points)
    graded = Forecast(points, Tokens(points * 2 * _PROMPT_TOKENS, points * _REPLY_TOKENS))
    checked = Forecast(points, Tokens(points * (size + _PROMPT_TOKENS), points * _REPLY_TOKENS))
    written = Forecast(len(session.turns), Tokens(size + len(session.turns) * _PROMPT_TOKENS, size))
    return written + graded + checked


def _call(tokens: int) -> Forecast:
    return Forecast(1, Tokens(tokens, _REPLY_TOKENS))


def _tokens(session: Session) -> int:
    return sum(len(words_of(turn)) for turn in session.turns) // _CHARS_PER_TOKEN
