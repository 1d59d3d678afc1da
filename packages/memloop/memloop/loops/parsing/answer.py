"""The reply of an answer prompt."""

from dataclasses import dataclass

from memloop.loops.parsing.spoken import listen
from memloop.ports import Completion
from memloop.profiles import Parser
from memloop.scoring.spoken_answer import answer_in_words
from memloop.scoring.strict import last_boxed


@dataclass(frozen=True, slots=True)
class Answer:
    """``boxed`` is False when the reply has neither a closed box nor "the answer is": its whole text is the answer."""

    text: str
    boxed: bool


def parse_answer(completion: Completion, form: Parser = "boxed") -> Answer:
    r"""What stands in the last ``\boxed{}`` (else ``\fbox{}``), else the whole text; empty when nothing was said.

    The form ``words`` takes what follows the last "the answer is".
    """
    spoken = listen(completion)
    inside = answer_in_words(spoken.text) if form == "words" else last_boxed(spoken.text)
    return Answer(spoken.text, boxed=False) if inside is None else Answer(inside.strip(), boxed=True)
