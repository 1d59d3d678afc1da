"""Imports the prompts of MemAgent, MemReread and MemOS's reader from a checkout: constants of a module."""

import ast
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from inference.profile_import.imported import Entry, Imported
from inference.profile_import.literals import HOLE, Literals, parse_python
from inference.profile_import.sources import ImportRefused, SourceFile

_SECTION: Final = {"prompt": "problem", "memory": "memory", "chunk": "section"}
_JUDGED: Final = {"question": "question", "memory": "memory", "decomposed_history": "query_history"}
_MERGED: Final = {"question": "question", "memory": "memory", "subquestion": "subquestion", "answer": "subanswer"}
_HISTORY_OF: Final = "get_progress_or_answer_messages"
_HISTORY_LINE: Final = f"<query>{HOLE}</query> <result>{HOLE}</result>"
_JUDGE_TOKENS: Final = 8192
_DECODING: Final = {"max_tokens": 1024, "temperature": 0.7, "top_p": 0.95, "thinking": False}
_BUDGET: Final = {"window_tokens": 8192, "question_tokens": 1024, "chunk_tokens": 5000, "memory_tokens": 1024}
_DIRECT: Final = {"window_tokens": 131_072, "question_tokens": 1024, "chunk_tokens": 5000, "memory_tokens": 120_000}
_DIRECT_REPLY_TOKENS: Final = 10_000
_WINDOW_TOKENS: Final = 16_384
"""Room for a verdict of ``_JUDGE_TOKENS`` beside question, memory and history."""


def import_memagent(sources: Sequence[SourceFile]) -> Imported:
    """Import MemAgent's reading and answering prompts: those of its training and its demo. Raises ImportRefused."""
    (module,) = sources
    return Imported("memagent", (module,), *_memagent(module), _BUDGET)


def import_memagent_table(sources: Sequence[SourceFile]) -> Imported:
    """Import the prompts of MemAgent's tables, which ask for "the answer is …", not for a box. Raises ImportRefused."""
    (module,) = sources
    texts, settings, prompts = _memagent(module)
    prompts["answer"]["parser"] = "words"
    return Imported("memagent-table", (module,), texts, settings, prompts, _BUDGET)


def import_memagent_direct(sources: Sequence[SourceFile]) -> Imported:
    """Import the prompt of MemAgent's baselines, which read a whole document at once. Raises ImportRefused.

    The document takes the place of the memory, as for our direct reader.
    """
    (module,) = sources
    texts = {"answer.txt": _Constants(module).marked("template_0shot", {"$DOC$": "{memory}", "$Q$": "{problem}"})}
    prompts = _prompts(texts)
    prompts["answer"] |= {"parser": "words", "max_tokens": _DIRECT_REPLY_TOKENS}
    return Imported("memagent-direct", (module,), texts, {}, prompts, _DIRECT)


def _memagent(module: SourceFile) -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, Entry]]]:
    """Return texts, settings and prompts of one of MemAgent's modules."""
    constants = _Constants(module)
    texts = {
        "read.txt": constants.template("TEMPLATE", _SECTION),
        "answer.txt": constants.template("TEMPLATE_FINAL", {"prompt": "problem", "memory": "memory"}),
    }
    return texts, {"empty_memory": constants.text("NO_MEMORY")}, _prompts(texts)


def import_memreread(sources: Sequence[SourceFile]) -> Imported:
    """Import MemReread's four prompts, and its texts for an empty memory and history. Raises ImportRefused."""
    prompts, tools = sources
    constants = _Constants(prompts)
    texts = {
        "read.txt": constants.template("MEMAGENT_READING_TEMPLATE", _SECTION),
        "answer.txt": constants.template("ANSWERING_TEMPLATE", {"question": "problem", "memory": "memory"}),
        "judge.txt": constants.template("DECOMPOSING_OR_ANSWERING_TEMPLATE", _JUDGED),
        "integrate.txt": constants.template("INTEGRATING_TEMPLATE", _MERGED),
    }
    words = {"empty_memory": constants.text("NO_MEMORY"), "no_history": _no_history(tools)}
    entries = _prompts(texts)
    entries["judge"]["max_tokens"] = _JUDGE_TOKENS
    budget = {**_BUDGET, "window_tokens": _WINDOW_TOKENS}
    return Imported("memreread", (prompts, tools), texts, {**words, "subanswer": "whole"}, entries, budget)


def import_memos_reader(sources: Sequence[SourceFile]) -> Imported:
    """Import the prompt by which MemOS asks a passive memory reader, such as MemReader-0.6B. Raises ImportRefused.

    One user message; a turn is ``role: [time]: text``. The decoding is that of MemOS's settings, without its top_k.
    """
    (module,) = sources
    slots = {"${custom_tags_prompt}": "", "${conversation}": "{conversation}"}
    texts = {"extract.txt": _Constants(module).marked("SIMPLE_STRUCT_MEM_READER_PROMPT", slots)}
    memory: dict[str, Entry] = {"template": "extract.txt", "system": "", "parser": "memory_list", "max_tokens": 8000}
    memory |= {"temperature": 0.6, "top_p": 0.95, "thinking": False}
    turns = {"timed": "{role}: [{time}]: {text}"}
    return Imported("memos-reader", (module,), texts, {}, {"memory": memory}, turns=turns)


class _Constants:
    """A module's texts by name."""

    def __init__(self, module: SourceFile) -> None:
        self._name = module.name
        self._texts = Literals(module.name).texts(parse_python(module.raw, module.name))

    def text(self, name: str) -> str:
        """Return the constant. Raises ImportRefused."""
        text = self._texts.get(name)
        if text is None or HOLE in text:
            found = ", ".join(sorted(self._texts)) or "none"
            raise ImportRefused(f"{self._name}: expected the text {name}; found {found}")
        return text

    def marked(self, name: str, slots: Mapping[str, str]) -> str:
        """Return the constant with ours in the place of its marks. Raises ImportRefused unless each comes once."""
        text, expected = self.text(name), " and ".join(slots)
        if any(text.count(mark) != 1 for mark in slots):
            raise ImportRefused(f"{self._name}: {name}: expected {expected}, each once; found others")
        for mark, ours in slots.items():
            text = text.replace(mark, ours)
        return text

    def template(self, name: str, slots: Mapping[str, str]) -> str:
        """Return a ``str.format`` template with our slots for its own; all other bytes as ``format`` writes them.

        ``slots`` maps each of its slots to ours. Raises ImportRefused when it has others, lacks one, or cannot be
        expressed so.
        """
        text, where, expected = self.text(name), f"{self._name}: {name}", _listed(slots)
        try:
            pieces = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ImportRefused(f"{where}: expected a format string; found one that is broken: {error}") from error
        template = ""
        seen = set[str]()
        for literal, field, spec, conversion in pieces:
            template += literal
            if field is None:
                continue
            if field not in slots or spec or conversion:
                found = f"{{{field}{':' + spec if spec else ''}}}"
                raise ImportRefused(f"{where}: expected the slots {expected}; found {found}")
            template += f"{{{slots[field]}}}"
            seen.add(field)
        if seen != set(slots):
            raise ImportRefused(f"{where}: expected the slots {expected}; found only {_listed(seen)}")
        # Both render to the same text: a brace that the source escapes must not become a slot of ours
        sent = text.format_map({theirs: f"({number})" for number, theirs in enumerate(slots)})
        marks = {f"{{{ours}}}": f"({number})" for number, ours in enumerate(slots.values())}
        if re.sub("|".join(map(re.escape, marks)), lambda mark: marks[mark[0]], template) != sent:
            raise ImportRefused(f"{where}: expected a text without slots of ours; found one of {_listed(marks)}")
        return template


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _prompts(texts: Mapping[str, str]) -> dict[str, dict[str, Entry]]:
    return {name.removesuffix(".txt"): {"template": name, **_DECODING} for name in texts}


def _no_history(module: SourceFile) -> str:
    """Return the judge's text for an empty history; also check the format of the line that our loop writes."""
    where = f"{module.name}: {_HISTORY_OF}"
    tree = parse_python(module.raw, module.name)
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == _HISTORY_OF]
    if len(found) != 1:
        raise ImportRefused(f"{where}: expected one function of this name; found {len(found)}")
    literals = Literals(module.name)
    nodes = list(ast.walk(found[0]))
    lines = [literals.value(node) for node in nodes if isinstance(node, ast.JoinedStr)]
    if lines != [_HISTORY_LINE]:
        raise ImportRefused(f"{where}: expected lines <query>…</query> <result>…</result>; found others")
    words = [
        node.value.value
        for node in nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "history_str"
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    if len(words) != 1:
        raise ImportRefused(f"{where}: expected one text for an empty history; found {len(words)}")
    return words[0]
