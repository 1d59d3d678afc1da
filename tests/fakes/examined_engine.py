"""A scripted engine for memory evaluations: it keeps all turns, answers from notes what it can, and judges by words."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from evaluation.memory.prompts import ANSWER_SYSTEM
from memloop.scoring.lenient import normalise
from tests.fakes.job_engine import Body, Reply, add_memory, last_text
from trainer.data.dialogues.dialogue import Conversation

_TURN = re.compile(r"^\[(?:user|assistant)\](?: \([^)]*\))?: (.+)$", re.MULTILINE)
_QUESTION = re.compile(r"^Question: (.+)$", re.MULTILINE)
UNKNOWN = "I do not know."


def examined(talk: Conversation, *, judge: Callable[[Mapping[str, Any]], str] | None = None) -> Callable[[Body], Reply]:
    """The engine of a conversation whose right answers it knows, and says where the notes hold the evidence."""
    said = {turn.id: normalise(turn.text) for turn in talk.turns}
    answers = {q.text: (q.answer, [said[turn] for turn in q.evidence]) for q in talk.questions}

    def answer(body: Body) -> Reply:
        if body.get("tools"):
            return add_memory(*_TURN.findall(last_text(body)))
        if "<memories>\nNew memory " in last_text(body):
            return ""  # no turn changes a fact of another one
        if str(body["messages"][0]["content"]) == ANSWER_SYSTEM:
            return _from_notes(last_text(body), answers)
        if (asked := last_text(body).rpartition("\n")[2]) in answers:  # a chat, whose notes stand before it
            return _known(json.dumps(body["messages"], ensure_ascii=False), answers[asked])
        return (judge or by_words)(json.loads(last_text(body)))

    return answer


def _from_notes(prompt: str, answers: Mapping[str, tuple[str, list[str]]]) -> str:
    notes, _, asked = prompt.rpartition("</notes>")
    found = _QUESTION.search(asked)
    assert found is not None
    return _known(notes, answers[found[1]])


def _known(notes: str, due: tuple[str, list[str]]) -> str:
    answer, evidence = due
    known = normalise(notes)
    return answer if all(words in known for words in evidence) else UNKNOWN


def by_words(data: Mapping[str, Any]) -> str:
    """A judge that compares words and takes no reference to be contained in another."""
    if "answer" in data:
        right = normalise(data["answer"]) == normalise(data["reference"])
        return f"Compared.\nVerdict: {'correct' if right else 'wrong'}"
    if "memory" in data:
        return f"Verdict: {_checked(data)}"
    fact = normalise(data["expected"].partition(": ")[2])
    held = any(fact in normalise(memory) for memory in data["memories"])
    if "replaced" in data:
        return f"Verdict: {'correct' if held else 'missed'}"
    return f"Verdict: {'full' if held else 'missed'}"


def _checked(data: Mapping[str, Any]) -> str:
    memory = normalise(data["memory"])
    said = any(memory in normalise(turn) or normalise(turn) in memory for turn in data["dialogue"])
    wanted = any(normalise(point.partition(": ")[2]) in memory for point in data["expected"])
    return f"{'full' if said else 'missed'} {'target' if wanted else 'other'}"
