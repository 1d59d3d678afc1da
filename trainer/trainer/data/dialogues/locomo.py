"""LoCoMo: ``[{sample_id, conversation, qa}]``, sessions as ``session_N`` beside ``session_N_date_time``.

Source: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (2024), its data file.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import BaseModel, Field, JsonValue, TypeAdapter

from trainer.data.dialogues.dialogue import Conversation, Question, Session, Turn

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = 5
_SESSION = re.compile(r"session_(\d+)")
_TURN_ID = re.compile(r"D\d+:\d+")
_DATE = "%I:%M %p on %d %B, %Y"


class _Turn(BaseModel):
    speaker: str
    dia_id: str
    text: str = ""
    blip_caption: str | None = None

    def said(self, *, captions: bool) -> str:
        """Return the words, and the caption of an attached picture."""
        shown = captions and self.blip_caption
        return f"{self.text} [picture: {self.blip_caption}]".strip() if shown else self.text


class _Asked(BaseModel):
    question: str
    answer: str | int | float | None = None
    evidence: tuple[str, ...] = ()
    category: int


class _Sample(BaseModel):
    sample_id: str
    conversation: dict[str, JsonValue]
    qa: tuple[_Asked, ...] = Field(default=())


_TURNS = TypeAdapter(tuple[_Turn, ...])


def conversation(row: object, *, adversarial: bool = False, captions: bool = True) -> Conversation:
    """Parse one sample. Category 5 has no correct answer and is skipped by default. ``captions``: those of pictures.

    Evidence that names unknown turns is skipped. Raises ValueError (also pydantic's).
    """
    sample = _Sample.model_validate(row)
    sessions = _sessions(sample.conversation, captions=captions)
    known = {turn.id for session in sessions for turn in session.turns}
    questions = tuple(
        Question(
            id=f"q{number}",
            text=asked.question,
            answer="" if asked.answer is None else str(asked.answer),
            categories=(CATEGORIES.get(asked.category, str(asked.category)),),
            after_sessions=len(sessions),
            evidence=tuple(dict.fromkeys(each for each in _ids(asked.evidence) if each in known)),
        )
        for number, asked in enumerate(sample.qa)
        if adversarial or asked.category != ADVERSARIAL
    )
    return Conversation(sample.sample_id, sessions, questions)


def _ids(evidence: tuple[str, ...]) -> list[str]:
    """Split the entries: one may name several turns."""
    return [found for entry in evidence for found in _TURN_ID.findall(entry)]


def _sessions(fields: Mapping[str, JsonValue], *, captions: bool) -> tuple[Session, ...]:
    numbers = sorted(int(found[1]) for name in fields if (found := _SESSION.fullmatch(name)))
    return tuple(_session(number, fields, captions=captions) for number in numbers)


def _session(number: int, fields: Mapping[str, JsonValue], *, captions: bool) -> Session:
    told = fields.get(f"session_{number}_date_time")
    if told is None:
        raise ValueError(f"session_{number} has no session_{number}_date_time")
    began_at = datetime.strptime(str(told), _DATE).replace(tzinfo=UTC)
    turns = _TURNS.validate_python(fields[f"session_{number}"])
    return Session(
        str(number), began_at, tuple(Turn(t.dia_id, t.speaker, t.said(captions=captions), began_at) for t in turns)
    )
