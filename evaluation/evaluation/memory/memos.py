"""MemOS's way of evaluating a memory: its own words, from your checkout, its scores, and what differs from ours.

Source: MemTensor/MemOS v2.0.31, ``evaluation/scripts`` (LoCoMo, LongMemEval), by which MemReader's tables are likely to
be made; HaluMem's evaluation code for its details.
"""

import ast
import hashlib
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from evaluation.memory.records import Verdict
from inference.profile_import.literals import parse_python
from inference.profile_import.sources import ImportRefused, read_source
from memloop.loops.rendering import memory_lines
from memloop.ports import Recalled
from trainer.data.dialogues.formats import Format

Protocol: TypeAlias = Literal["ours", "memos"]
Count: TypeAlias = Callable[[str], int]
"""Tokens of a text."""
MEMOS_TOP_K: Final = 20
UPDATE_TOP_K: Final = 10
TURNS_PER_WRITE: Final[Mapping[Format, int]] = {"locomo": 2, "longmemeval": 2, "halumem": 20}
LONGMEMEVAL_TURN_CHARS: Final = 8000
_LABEL: Final = re.compile(r'\{\s*"label"\s*:\s*["\']([^"\']*)["\']\s*\}')
_WORD: Final = re.compile(r"\w+|[^\w\s]")
_FOLDER: Final = "evaluation/scripts"
DIFFERENCES: Final[Mapping[str, str]] = {
    "context": "each memory ends with its date; MemOS's texts hold theirs, and up to 6 preferences stand beside them",
    "long turns": "LongMemEval's turns are divided after 8,000 characters; MemOS drops the rest",
    "words of F1": "cut by a regular expression; MemOS cuts by NLTK, which divides contractions otherwise",
    "replies": "answers of at most 1,024 tokens and judgements of 1,024; MemOS sets no limit",
    "unreadable verdicts": "a judgement without a label is wrong; MemOS's script ends at one",
    "HaluMem": "the words of its judges and of its answers are ours: its licence forbids derivatives",
}


@dataclass(frozen=True, slots=True)
class Texts:
    """MemOS's prompts for one benchmark, as ``str.format`` templates, and how often it has an answer judged."""

    context: str
    answer: str
    judge_system: str
    judge: str
    judgements: int

    @property
    def digest(self) -> str:
        """Return twelve digits of the hash of all texts."""
        texts = (self.context, self.answer, self.judge_system, self.judge, str(self.judgements))
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]

    def shown(self, views: Mapping[str, Sequence[Recalled]]) -> str:
        """Return the memories as the answering model sees them, by the person in whose memory they were found."""
        values = dict[str, str]()
        for number, (name, found) in enumerate(views.items(), 1):
            lines = memory_lines(found, nothing="", line="{text} ({date})")
            values |= {f"speaker_{number}": name, f"speaker_{number}_memories": lines}
            values |= {"user_id": name, "memories": lines}
        return self.context.format_map(values)


@dataclass(frozen=True, slots=True)
class Memos:
    """The protocol for one benchmark. HaluMem has no texts of MemOS's: its answers and judges are ours."""

    count: Count
    texts: Texts | None = None


def texts_of(checkout: Path, format_: Format) -> Texts | None:
    """Read a checkout's texts for a benchmark. Raises ImportRefused."""
    if format_ == "halumem":
        return None
    if format_ == "locomo":
        prompts = _texts(checkout, f"{_FOLDER}/locomo/prompts.py")
        grader = _texts(checkout, f"{_FOLDER}/locomo/locomo_eval.py")
        return Texts(
            _named(prompts, "TEMPLATE_MEMOS", "speaker_1", "speaker_1_memories", "speaker_2", "speaker_2_memories"),
            _named(prompts, "ANSWER_PROMPT_MEMOS", "context", "question"),
            _named(grader, "system_prompt"),
            _named(grader, "accuracy_prompt", "question", "gold_answer", "response"),
            judgements=3,
        )
    prompts = _texts(checkout, f"{_FOLDER}/utils/prompts.py")
    grader = _texts(checkout, f"{_FOLDER}/longmemeval/lme_eval.py")
    return Texts(
        _named(prompts, "MEMOS_CONTEXT_TEMPLATE", "user_id", "memories"),
        _named(prompts, "LME_ANSWER_PROMPT", "context", "question", "question_date"),
        _named(grader, "system_prompt"),
        _named(prompts, "LME_JUDGE_MODEL_TEMPLATE", "question", "golden_answer", "response"),
        judgements=1,
    )


def label_of(reply: str) -> Verdict | None:
    """Parse the judge's ``{"label": "CORRECT"}``; None without one."""
    found = _LABEL.search(reply)
    if found is None:
        return None
    return "correct" if found[1].strip().lower() == "correct" else "wrong"


def set_f1(answer: str, gold: str) -> float:
    """Return the F1 of two sets of words, articles and punctuation included."""
    mine, theirs = (set(_WORD.findall(text.lower())) for text in (answer, gold))
    shared = len(mine & theirs)
    return 2 * shared / (len(mine) + len(theirs)) if shared else 0.0


def cl100k() -> Count:
    """Return the count of tokens by OpenAI's cl100k_base, whose table tiktoken downloads once."""
    import tiktoken  # only this protocol counts by it

    encoding = tiktoken.get_encoding("cl100k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def _texts(checkout: Path, name: str) -> tuple[str, dict[str, list[str]]]:
    """Return a module's name, and every text that it assigns, wherever: an f-string as a template of its names."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(parse_python(read_source(checkout, name).raw, name)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            match node.value:
                case ast.Constant(value=str() as text):
                    found.setdefault(node.targets[0].id, []).append(text)
                case ast.JoinedStr(values=parts):
                    found.setdefault(node.targets[0].id, []).append("".join(map(_template, parts)))
                case _:
                    pass
    return name, found


def _template(part: ast.expr) -> str:
    match part:
        case ast.Constant(value=str() as text):
            return text.replace("{", "{{").replace("}", "}}")
        case ast.FormattedValue(value=ast.Name(id=name)):
            return f"{{{name}}}"
        case _:
            return "{?}"


def _named(module: tuple[str, dict[str, list[str]]], name: str, *slots: str) -> str:
    """Return the module's only text of this name, which has these slots. Raises ImportRefused."""
    where, found = module
    texts = found.get(name, [])
    if len(texts) != 1:
        raise ImportRefused(f"{where}: expected one text {name}; found {len(texts)}")
    try:
        fields = {field for _, field, _, _ in string.Formatter().parse(texts[0]) if field is not None}
    except ValueError:
        fields = {"?"}
    if fields != set(slots):
        raise ImportRefused(f"{where}: {name}: expected the slots {', '.join(slots) or 'none'}; found {sorted(fields)}")
    return texts[0]
