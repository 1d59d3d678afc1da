"""Imports MemReader's prompts from the model card (``README.md``) in the checkpoint's snapshot.

The card shows a request: tool definitions, and messages with a system text and a user text. They are in fenced blocks,
as Python or as JSON; a system or user text may also be a plain block under a line that names it.

Finds the fenced code blocks of a Markdown page. Source: CommonMark 0.31, section 4.5.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from inference.profile_import.imported import Imported, as_json_file
from inference.profile_import.literals import HOLE, Literals, Value, parse_python
from inference.profile_import.sources import ImportRefused, SourceFile
from memloop.wire.chat import Json

_OPENING = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\r\n]*?)[ \t]*\r?\n?$")
_LINE = re.compile(r"[^\n]*\n|[^\n]+$")


@dataclass(frozen=True, slots=True)
class Block:
    """One block. ``label`` is the last line of text before it: a heading, or what introduces it.

    ``text`` ends before the line end in front of the closing fence; all other line ends are the page's own.
    """

    language: str
    label: str
    text: str
    line: int


def fenced_blocks(page: str) -> Iterator[Block]:
    """Yield the page's blocks, in order. A block without an end extends to the page's end."""
    lines = _LINE.findall(page)
    label, position = "", 0
    while position < len(lines):
        opening = _OPENING.match(lines[position])
        if opening is None:
            label = lines[position].strip() or label
            position += 1
            continue
        start = position + 1
        fence = opening["fence"]
        closing = re.compile(rf"^ *{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\r?\n?$")
        end = next((number for number in range(start, len(lines)) if closing.match(lines[number])), len(lines))
        yield _block(lines[position + 1 : end], opening, label, position + 1)
        position = end + 1


def _block(lines: list[str], opening: re.Match[str], label: str, line: int) -> Block:
    indent = len(opening["indent"])
    text = "".join(re.sub(rf"^ {{0,{indent}}}", "", each) for each in lines)
    language = opening["info"].split(maxsplit=1)[0].lower() if opening["info"] else ""
    return Block(language, label, re.sub(r"\r?\n\Z", "", text), line)


CARD: Final = "README.md"
_TOOLS: Final = frozenset({"search_memory", "add_memory", "buffer_memory", "ignore_memory"})
_PLAIN: Final = frozenset({"", "text", "txt", "plaintext"})
_PYTHON: Final = frozenset({"python", "py", "python3"})
_TURN: Final = re.compile(r"^\[[\w.-]+\]: ", re.MULTILINE)
_BLANK_LINE: Final = re.compile(r"\n\r?\n\Z")
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")
_SYSTEM_LABEL: Final = re.compile(r"\bsystem (prompt|message|text)\b", re.IGNORECASE)
_USER_LABEL: Final = re.compile(r"\buser (prompt|message|text|input)\b", re.IGNORECASE)


def import_card(sources: Sequence[SourceFile]) -> Imported:
    """Import the memory writer's prompt from the card. Raises ImportRefused.

    Where examples show several system texts, the one that names the four tools is the prompt, with the user text and
    the tools beside it. ``Imported.left`` names the others.
    """
    (card,) = sources
    found = _Found(card.name)
    for block in fenced_blocks(card.text):
        found.look_at(block)
    naming = [shown for shown in found.systems if all(tool in shown.text for tool in _TOOLS)]
    system = found.only("system text", naming or found.systems)
    blocks = {shown.line for shown in found.systems if shown.text == system}

    def beside(texts: Sequence[_Shown]) -> Sequence[_Shown]:
        return [shown for shown in texts if shown.line in blocks] or texts

    user = found.only("user text with a conversation of [role]: lines", beside(found.users) or beside(found.lone_users))
    tools = found.only(f"list of the tools {', '.join(sorted(_TOOLS))}", beside(found.tools))
    texts = {"memory_system.txt": system, "memory_user.txt": user, "tools.json": tools}
    if (places := user.count("{conversation}")) != 1:
        raise ImportRefused(f"{card.name}: expected one place of {{conversation}}; found {places}")
    named = {"template": "memory_user.txt", "system": "memory_system.txt", "tools": "tools.json"}
    prompt = {**named, "max_tokens": 1024, "temperature": 0.2, "thinking": True, "tool_choice": "required"}
    left = tuple(
        f"{name} of {len(shown.text.encode())} bytes, line {shown.line}"
        for name, taken, others in (
            ("system text", system, found.systems),
            ("user text", user, (*found.users, *found.lone_users)),
            ("tools", tools, found.tools),
        )
        for shown in others
        if shown.text != taken
    )
    return Imported("memreader-card", (card,), texts, settings={}, prompts={"memory": prompt}, left=left)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A text, and the line of the block that shows it."""

    text: str
    line: int


@dataclass
class _Found:
    """The card's texts so far. ``users`` are in a request with a system text, ``lone_users`` elsewhere."""

    card: str
    systems: list[_Shown] = field(default_factory=list[_Shown])
    users: list[_Shown] = field(default_factory=list[_Shown])
    lone_users: list[_Shown] = field(default_factory=list[_Shown])
    tools: list[_Shown] = field(default_factory=list[_Shown])
    blocks: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._literals = Literals(self.card)

    def look_at(self, block: Block) -> None:
        self.blocks.append(block.language or "plain")
        for values in self._lists(block):
            self._take(values, block.line)
        if block.language in _PLAIN and _SYSTEM_LABEL.search(block.label):
            self.systems.append(_Shown(block.text, block.line))
        elif block.language in _PLAIN and _USER_LABEL.search(block.label):
            self.lone_users += (_Shown(text, block.line) for text in _templates([block.text]))

    def only(self, what: str, candidates: Iterable[_Shown]) -> str:
        """Return the single text that all candidates equal. Raises ImportRefused."""
        different = list(dict.fromkeys(shown.text for shown in candidates))
        if any(HOLE in text for text in different):
            raise ImportRefused(f"{self.card}: expected a {what}; found one that an expression completes")
        if len(different) == 1:
            return different[0]
        blocks = f"{len(self.blocks)} blocks ({', '.join(dict.fromkeys(self.blocks)) or 'none'})"
        count = f"{len(different)} that differ" if different else "none"
        raise ImportRefused(f"{self.card}: expected one {what}; found {count} in {blocks}")

    def _lists(self, block: Block) -> Iterator[list[Value]]:
        where = f"{self.card}, block at line {block.line}"
        if block.language in _PYTHON:
            try:
                tree = parse_python(block.text, where)
            except ImportRefused:
                return
            yield from self._literals.lists(tree)
        elif block.language == "json":
            yield from _json_lists(block.text, where)

    def _take(self, values: list[Value], line: int) -> None:
        items = [value for value in values if isinstance(value, dict)]
        if not items or len(items) != len(values):
            return
        if sorted(_tool_name(item) for item in items) == sorted(_TOOLS):
            self.tools.append(_Shown(as_json_file(cast(list[Json], items)), line))
        messages = [(item.get("role"), content) for item in items if isinstance(content := item.get("content"), str)]
        led = [text for role, text in messages[:1] if role == "system"]
        self.systems += (_Shown(text, line) for text in led if text != HOLE)
        users = _templates(text for role, text in messages if role == "user")
        (self.users if led else self.lone_users).extend(_Shown(text, line) for text in users)


def _tool_name(item: dict[str, Value]) -> str:
    function = item.get("function")
    return str(function.get("name")) if item.get("type") == "function" and isinstance(function, dict) else ""


def _templates(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        template = _template(text)
        if template is not None:
            yield template


def _template(text: str) -> str | None:
    """Return the user text with ``{conversation}`` in the place of its conversation; None if it has none."""
    if text.count(HOLE) == 1 and text.strip() != HOLE:
        return text.replace(HOLE, "{conversation}")
    first = _TURN.search(text)
    if HOLE in text or first is None:
        return None
    instruction, turns = text[: first.start()], text[first.start() :].rstrip()
    plain = all(_TURN.match(line) for line in turns.splitlines())
    if not (plain and instruction.strip() and _BLANK_LINE.search(instruction)):
        return None
    return f"{instruction}{{conversation}}{text[len(instruction) + len(turns) :]}"


def _json_lists(text: str, where: str) -> Iterator[list[Value]]:
    try:
        waiting: list[Value] = [cast(Value, json.loads(text))]
    except ValueError:
        return
    if _HALF_CHARACTER.search(json.dumps(waiting, ensure_ascii=False)):
        raise ImportRefused(f"{where}: expected texts; found one with a lone surrogate")
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            yield value
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
