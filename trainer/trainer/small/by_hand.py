"""Measures a network on what people wrote by hand who never saw the generator: facts, updates, and small talk."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

from memloop.loops.relating import pair
from memloop.loops.rendering import conversation_lines, memory_line, ranked_lines
from memloop.wire.chat import ChatMessage
from memloop.wire.memory import MemoryDraft, MemoryItem, Source
from trainer.small.evaluate import UNKNOWN, Reply, Scores, facts_of
from trainer.small.kinds import English
from trainer.small.sample import PROFILE, Sample, by_rank

_FOLDER: Final = Path(__file__).parent / "english" / "by_hand"
_AT: Final = datetime(2026, 11, 27, 9, tzinfo=UTC)
_STATEMENTS: Final = {"everyday": "everyday.jsonl", "by hand": "statements.jsonl"}


def by_hand(reply: Reply, *, most: int | None = None) -> Scores:
    """Tell each statement and ask for it alone and among five others; tell updates, and lines that hold no fact.

    ``most`` bounds the statements, updates and lines of each file; None takes all.
    A statement is stored, and a question answered, when a word begins with its gold; an update is answered when the new
    value occurs in an answer from what is stored after both turns.
    """
    scores = Scores()
    for name, file in _STATEMENTS.items():
        rows = [json.loads(line) for line in _lines(file, most)]
        notes = _facts(_told([row["say"] for row in rows], reply))
        own = [[note] for note in notes]
        sixes = [_among(notes, place) for place in range(len(rows))]
        alone, among = (
            reply([_asked(row["ask"], held) for row, held in zip(rows, beside, strict=True)]) for beside in (own, sixes)
        )
        for row, note, one, six in zip(rows, notes, alone, among, strict=True):
            for figure, text in (("stored", note), ("answered", one), ("answered among six", six)):
                scores.add(f"{name} {figure}", right=holds(text, row["gold"]))
    for stored in _told(_lines("small_talk.txt", most), reply):
        scores.add("by hand small talk stored", right=bool(stored))
    _general(English("held_out").general[:most], reply, scores)
    _updates([json.loads(line) for line in _lines("updates.jsonl", most)], reply, scores)
    return scores


def holds(text: str, gold: str) -> bool:
    """Return whether a word of the text begins with the gold, or a number is it."""
    return bool(re.search(rf"\b{re.escape(gold)}(?!\d)", text, re.IGNORECASE))


def _among(notes: list[str], place: int) -> list[str]:
    """Return a note among the five that follow, where a search would rank it."""
    beside = [notes[(place + step) % len(notes)] for step in range(1, 6)]
    rank = by_rank(range(6), Random(f"six/{place}"))
    return [*beside[:rank], notes[place], *beside[rank:]]


def _lines(file: str, most: int | None) -> list[str]:
    return (_FOLDER / file).read_text("utf-8").splitlines()[:most]


def _general(questions: list[str], reply: Reply, scores: Scores) -> None:
    """Ask what no note matters to, below six notes: a model that refuses lost what its base could do."""
    notes = _facts(_told([json.loads(line)["say"] for line in _lines("everyday.jsonl", 6)], reply))
    for said in reply([_asked(question, notes) for question in questions]):
        scores.add("general questions refused", right=bool(UNKNOWN.search(said)))


def _updates(rows: list[dict[str, str]], reply: Reply, scores: Scores) -> None:
    """Tell a fact and its change; beside the first one lie two others, as near ones do in the store."""
    before, after = (_told([row[turn] for row in rows], reply) for turn in ("first", "then"))
    about = [[before[(place - step) % len(rows)] for step in range(3)] for place in range(len(rows))]
    new = [place for place, note in enumerate(after) if note]
    pairs = [(at, note) for at in new for note in about[at] if note]
    shown = [pair(_draft(after[at]), _item(note)) for at, note in pairs]
    verdicts = reply([Sample("relate", PROFILE.render("relate", memories=each), "") for each in shown])
    changed = {each for each, verdict in zip(pairs, verdicts, strict=True) if "1: updates 1" in verdict}
    # The loop takes the first that is related; the nearest, which it asks about first, is the one of the same matter.
    updated = {at for at in new if (at, before[at]) in changed}
    for each in pairs:
        if each[1] != before[each[0]]:
            scores.add("by hand others kept", right=each not in changed)
    # The store itself replaces a memory of the same topic.
    updated |= {at for at in new if before[at] and _draft(before[at]).key == _draft(after[at]).key}
    held = [[after[at]] if at in updated else [before[at], after[at]] for at in range(len(rows))]
    answers = reply([_asked(row["ask"], _facts(notes)) for row, notes in zip(rows, held, strict=True)])
    for at, (row, answer) in enumerate(zip(rows, answers, strict=True)):
        scores.add("by hand updates recognised", right=at in updated)
        scores.add("by hand updates answered", right=holds(answer, row["gold"]))


def _told(texts: list[str], reply: Reply) -> list[str]:
    """Tell each text in a conversation of its own, and return the writer's replies; empty where nothing is stored."""
    turns = [Source(role="user", content=text, timestamp=_AT) for text in texts]
    told = [PROFILE.render("memory", conversation=conversation_lines([turn], PROFILE.turns)) for turn in turns]
    replies = reply([Sample("write", messages, "") for messages in told])
    return [said if facts_of(said) else "" for said in replies]


def _facts(replies: list[str]) -> list[str]:
    return [" ".join(facts_of(said)) for said in replies]


def _draft(said: str) -> MemoryDraft:
    key, _, fact = said.partition("\n")[0].partition(": ")
    return MemoryDraft(key=key, value=fact or said, memory_type="UserMemory")


def _item(said: str) -> MemoryItem:
    draft = _draft(said)
    return MemoryItem(
        id="m",
        memory=draft.value,
        key=draft.key,
        memory_type="UserMemory",
        user_id="u",
        valid_from=_AT,
        created_at=_AT,
        updated_at=_AT,
        hash="h",
    )


def _asked(question: str, notes: list[str]) -> Sample:
    lines = ranked_lines([memory_line(note, _AT) for note in notes if note])
    before = PROFILE.render("recall", memories=lines) if lines else ()
    return Sample("answer", (*before, ChatMessage(role="user", content=question)), "")
