"""Boosts of a candidate's score: each adds a share of its own, which ``explain`` shows under its name."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from memloop.wire.memory import NamedTime
from memory_store.retrieval.candidates import Candidate
from memory_store.retrieval.tuning import Tuning

_LONGEST: Final = timedelta(days=31)
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


def boost(
    candidates: Sequence[Candidate],
    tuning: Tuning,
    *,
    named: Collection[str],
    times: Collection[NamedTime],
    asked_at: datetime,
) -> None:
    """Adds the shares of speaker, date, question mark and feedback.

    ``named``: the words of names in the question; ``times``: those that it names.
    """
    boost_speakers(candidates, named, tuning.speaker)
    boost_dates(candidates, times, tuning.date)
    lower_questions(candidates, tuning.asking)
    weigh_feedback(candidates, tuning, asked_at=asked_at)


def boost_speakers(candidates: Sequence[Candidate], named: Collection[str], weight: float) -> None:
    """Boosts turns of a speaker whom the question names."""
    for one in candidates if named else ():
        if not one.speaker.isdisjoint(named):
            one.shares["speaker"] = weight


def boost_dates(candidates: Sequence[Candidate], asked: Collection[NamedTime], weight: float) -> None:
    """Boosts memories that name a time, or were said in one, that the question names."""
    for one in candidates if asked and weight else ():
        day = one.said_at.date()
        if any(span.start <= day <= span.end or _names(one, span) for span in asked):
            one.shares["date"] = weight


def _names(one: Candidate, asked: NamedTime) -> bool:
    """Returns whether the memory names a time in the asked one; "since 2019" is in no week."""
    longest = max(_LONGEST, asked.end - asked.start)
    return any(
        time.start <= asked.end and asked.start <= time.end and time.end - time.start <= longest for time in one.times
    )


def lower_questions(candidates: Sequence[Candidate], weight: float) -> None:
    """Lowers turns that ask: they repeat the words of the question and do not answer it."""
    for one in candidates if weight else ():
        if one.text.rstrip().endswith(_QUESTION_MARKS):
            one.shares["asking"] = -weight


def weigh_feedback(candidates: Sequence[Candidate], tuning: Tuning, *, asked_at: datetime) -> None:
    """Raises helpful memories and lowers outdated ones; a question about a time before the verdict lowers none."""
    for one in candidates:
        if (feedback := one.feedback) is None:
            continue
        if feedback.verdict == "helpful" and tuning.helpful:
            one.shares["helpful"] = tuning.helpful
        if feedback.verdict == "outdated" and tuning.outdated and feedback.at <= asked_at:
            one.shares["outdated"] = -tuning.outdated
