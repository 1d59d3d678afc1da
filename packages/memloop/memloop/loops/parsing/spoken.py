"""Parts a reply into thinking and speech. Engines differ in who does it, and models in how well they close the tag."""

import re
from dataclasses import dataclass
from typing import Final

from memloop.ports import Completion
from memloop.profiles import well_formed

_OPEN, _CLOSE = "<think>", "</think>"
_TAGS: Final = (
    (_OPEN, _CLOSE),  # DeepSeek, Qwen, GLM, MiniMax, Kimi
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),  # Gemini and Gemma
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),  # Magistral
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),  # Kimi-VL
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("<|begin_of_thought|>", "<|end_of_thought|>"),  # OpenThinker
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),  # gpt-oss
)
"""In which models think where their engine leaves that in the text."""
_ALONE: Final = frozenset({"</thought>", "</reasoning>"})
"""No template opens these, so a closing tag alone is speech."""
_END_OF: Final = {tag.lower(): end for start, end in _TAGS for tag in (start, end)}
_TAG: Final = re.compile("|".join(map(re.escape, _END_OF)), re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """Return an assistant's text without the thoughts in it, by the tags of the open models' templates.

    As in ``split_thinking``, a tag may be closed alone; one that begins a line and is never closed swallows the rest.
    """
    spoken: list[str] = []
    kept_to, opened = 0, None
    for tag in _TAG.finditer(text):
        end = _END_OF[tag[0].lower()]
        is_end = tag[0].lower() == end.lower()
        if opened is None and not is_end:
            opened = tag, end
            spoken.append(text[kept_to : tag.start()])
            kept_to = tag.start()
        elif is_end and (end == opened[1] if opened is not None else end not in _ALONE):
            spoken = spoken if opened is not None else []
            kept_to, opened = tag.end(), None
    if opened is None or spoken[-1].rpartition("\n")[2].strip():
        spoken.append(text[kept_to:])
    found = "".join(spoken)
    return text if found == text else found.strip()


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
