"""The reply of an answer prompt."""

from dataclasses import dataclass

from memloop.loops.parsing.spoken import listen
from memloop.ports import Completion
from memloop.scoring.boxed import last_boxed


@dataclass(frozen=True, slots=True)
class Answer:
    """``boxed`` is False when the reply held no closed box and its whole text is taken for the answer."""

    text: str
    boxed: bool


def parse_answer(completion: Completion) -> Answer:
    r"""What stands in the last ``\boxed{}`` (else ``\fbox{}``), else the whole text; empty when nothing was said."""
    spoken = listen(completion)
    inside = last_boxed(spoken.text)
    return Answer(spoken.text, boxed=False) if inside is None else Answer(inside.strip(), boxed=True)
