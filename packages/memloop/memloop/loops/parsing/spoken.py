"""Parts a reply into thinking and speech. Engines differ in who does it, and models in how well they close the tag."""

import re
from dataclasses import dataclass
from typing import Final

from memloop.ports import Completion
from memloop.profiles import well_formed

_OPEN, _CLOSE = "<think>", "</think>"


_TAGGED: Final = re.compile(r"<(think|thinking|thought|reasoning)>.*?</\1>|\[THINK\].*?\[/THINK\]", re.DOTALL)
_OPENED_BY_TEMPLATE: Final = re.compile(r"\A.*</(?:think|thinking)>|\A.*\[/THINK\]", re.DOTALL)
_NEVER_CLOSED: Final = re.compile(
    r"^\s*(?:<(?:think|thinking|thought|reasoning)>|\[THINK\]).*", re.DOTALL | re.MULTILINE
)


def without_thoughts(text: str) -> str:
    """Return an assistant's text without the thoughts in it, by the tags of the open models' templates.

    As in ``split_thinking``, a tag may be closed alone, and one that is never closed swallows the rest.
    """
    if "<" not in text and "[" not in text:
        return text
    spoken = _NEVER_CLOSED.sub("", _OPENED_BY_TEMPLATE.sub("", _TAGGED.sub("", text)))
    return text if spoken == text else spoken.strip()


@dataclass(frozen=True, slots=True)
class Spoken:
    """A reply apart from its thinking, both stripped. ``finished``: the model itself ended it, thinking closed."""

    text: str
    reasoning: str
    finished: bool


def listen(completion: Completion) -> Spoken:
    """Return the speech and the thinking of a reply. Text is well-formed: no NUL, no lone surrogates."""
    text, thought, closed = split_thinking(well_formed(completion.content))
    reasoning = "\n".join(part for part in (well_formed(completion.reasoning).strip(), thought) if part)
    return Spoken(text, reasoning, finished=closed and completion.finish_reason in {"stop", "tool_calls"})


def as_written(completion: Completion) -> str:
    """Return the reply as the published loops take it: outer white space stays, unless thinking came before it."""
    text = well_formed(completion.content)
    return listen(completion).text if _OPEN in text or _CLOSE in text else text


def split_thinking(content: str) -> tuple[str, str, bool]:
    """(speech, thinking, closed) of a raw text.

    Speech is what follows the last ``</think>``; the opening tag may be missing, since chat templates put it into
    the prompt. A ``<think>`` that is still open after that swallows the rest: the model never came to speak.
    """
    before, mark, after = content.rpartition(_CLOSE)
    thinking = before.replace(_OPEN, "").replace(_CLOSE, "").strip() if mark else ""
    speech, opened, unfinished = after.partition(_OPEN)
    if opened:
        thinking = "\n".join(part for part in (thinking, unfinished.strip()) if part)
    return speech.strip(), thinking, not opened
