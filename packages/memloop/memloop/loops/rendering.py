"""The texts of prompts and replies: turns and memories as lines, and a reply's speech apart from its thinking.

One place, for the memory writer, its tool results, chat recall and all loops. Engines differ in who parts thinking from
speech, and models in how well they close a tag.
"""

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from memloop.ports import Completion, Recalled
from memloop.profiles import PLAIN_TURNS, TurnLines, neutralise, well_formed
from memloop.wire.chat import ChatMessage
from memloop.wire.memory import NamedTime, Source

_ROLE_MARK = re.compile(r"^(?=[\[［][^\]］\n]*[\]］][^\S\n]{0,3}[:：])", re.MULTILINE)
_TURN_END = re.compile(r"<(?=[|｜])")
_OPEN, _CLOSE = "<think>", "</think>"
_DATED = re.compile(r"\d{4}")
_ID_CHARS = 8
_ECHO_CHARS = 2_000
_PENDING_CHARS = 1_000
_NOT_A_ROLE = re.compile(r"[^\w.-]+")


_TAGS: Final = (
    ("<think>", "</think>"),  # DeepSeek, Qwen, GLM, MiniMax, Kimi
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

    As in a reply of a loop, a tag may be closed alone; one that begins a line and is never closed swallows the rest.
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


def conversation_lines(turns: Iterable[Source], lines: TurnLines = PLAIN_TURNS) -> str:
    """``[role]: text`` for each turn that is shown, or the profile's lines with times where the turns have them.

    A line inside a text that looks like a turn is indented, and beside lines with times every further line of a text
    is, so that no text forges a turn or a date.
    """
    shown = [turn for turn in turns if lines.shows(turn)]
    if lines.plain:
        said = ((_role(turn.role), neutralise("\n".join(turn.said().splitlines()))) for turn in shown)
        return "\n".join(f"[{role}]: {_ROLE_MARK.sub(' ', text)}" for role, text in said)
    return "\n".join(_dated(shown, lines))


def _dated(turns: Iterable[Source], lines: TurnLines) -> Iterator[str]:
    day = ""
    for turn in turns:
        date = f"{turn.timestamp:%Y-%m-%d}" if turn.timestamp else ""
        if lines.date and date and date != day:
            yield lines.date.format(date=date, weekday=f"{turn.timestamp:%A}")
        day = date or day
        text = neutralise("\n ".join(turn.said().splitlines()))
        if lines.timed and turn.timestamp:
            time, weekday = f"{turn.timestamp:%Y-%m-%d %H:%M}", f"{turn.timestamp:%A}"
            yield lines.timed.format(role=_role(turn.role), time=time, weekday=weekday, text=text)
        else:
            yield f"[{_role(turn.role)}]: {text}"


def memory_lines(memories: Sequence[Recalled], *, nothing: str, line: str = "{rank}. {text} ({date})") -> str:
    """Renders a line for each memory, with the tags in its text made harmless; without memories ``nothing``.

    ``line`` may show ``{rank}`` (from 1), ``{text}``, ``{key}``, ``{date}`` (``2026-01-31``) and ``{id}`` (8
    characters).
    """
    lines = [
        line.format(
            rank=rank,
            text=one_line(memory.text),
            key=one_line(memory.key),
            date=memory.valid_from.date().isoformat(),
            id=memory.id[:_ID_CHARS],
        )
        for rank, memory in enumerate(memories, 1)
    ]
    return "\n".join(lines) or nothing


def memory_line(text: str, valid_from: datetime, times: tuple[NamedTime, ...] = ()) -> str:
    """``text (2026-01-31)``: the default line of ``memory_lines`` without its rank.

    Days that were meant by other words stand behind the date: ``(2026-01-31; yesterday: Friday 30 January 2026)``.
    """
    meant = [f"{one_line(time.text)}: {_in_words(time)}" for time in times if not _DATED.search(time.text)]
    return f"{one_line(text)} ({'; '.join((valid_from.date().isoformat(), *meant))})"


def _in_words(time: NamedTime) -> str:
    """Return the days as people write them: a day with its weekday, a month, a year, or the first and the last day."""
    start, end = time.start, time.end
    if start == end:
        return f"{start:%A} {start.day} {start:%B %Y}"
    if (start.day, start.month, end.day, end.month) == (1, 1, 31, 12):
        return f"{start.year}" if start.year == end.year else f"{start.year} to {end.year}"
    if start.day == 1 and end == date(start.year, start.month, monthrange(start.year, start.month)[1]):
        return f"{start:%B %Y}"
    same_year, same_month = start.year == end.year, (start.year, start.month) == (end.year, end.month)
    first = f"{start.day}" if same_month else f"{start.day} {start:%B}" if same_year else f"{start.day} {start:%B %Y}"
    return f"{first} to {end.day} {end:%B %Y}"


def ranked_lines(lines: Sequence[str]) -> str:
    return "\n".join(f"{rank}. {line}" for rank, line in enumerate(lines, 1))


def pending_lines(lines: Sequence[str]) -> str:
    """Puts the lines of turns that no memory was made of yet under a heading; without lines nothing."""
    return "\n".join(("Said lately, not yet turned into memories:", *lines)) if lines else ""


def pending_line(role: str, content: str, timestamp: datetime | None) -> str:
    """``- [user] text (2026-01-31)``, with the tags in the text made harmless. A long text is cut."""
    text = content if len(content) <= _PENDING_CHARS else f"{content[:_PENDING_CHARS]} …"
    date = f" ({timestamp.date().isoformat()})" if timestamp else ""
    return f"- [{_role(role)}] {one_line(text)}{date}"


def sealed(text: str) -> str:
    """Return the model's own text for its next prompt: its tags stay, except those that end a turn."""
    return _TURN_END.sub("&lt;", well_formed(text))


def rejected_reply(text: str) -> ChatMessage:
    """Return the start of an unusable reply, as a message of the conversation."""
    return ChatMessage(role="assistant", content=sealed(text[:_ECHO_CHARS]) or "(nothing)")


def _role(role: str) -> str:
    return _NOT_A_ROLE.sub("_", role) or "unknown"


def one_line(text: str) -> str:
    """Return the text with its tags made harmless and its line breaks as blanks."""
    return " ".join(neutralise(text).split())
