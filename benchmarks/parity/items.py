"""The documents of a comparison, and the replies that the scripted model gives while one is read."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Project: TypeAlias = Literal["memagent", "memagent-table", "memreread"]
CHUNK_TOKENS: Final = 5000
MAX_REREADS: Final = 2
_SENTENCE: Final = "The keeper of pier {pier} noted on day {day} that the harbour seal lay in locker {locker}. "


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted reply."""

    text: str
    finish_reason: Literal["stop", "length"] = "stop"


@dataclass(frozen=True, slots=True)
class Item:
    """A question on a document. ``replies`` is the script for a number of chunks; ``name`` serves as the model's id."""

    name: str
    question: str
    document: str
    replies: Callable[[int], Sequence[Reply]]


def items_of(project: Project) -> tuple[Item, ...]:
    """The project's items: each shows one behaviour of the loops."""
    return _memreread() if project == "memreread" else _memagent()


def prose(sentences: int) -> str:
    """Plain text of about 28 tokens a sentence."""
    return "".join(
        _SENTENCE.format(pier=day % 7, day=day, locker=day * 13 % 101) + ("\n\n" if day % 20 == 19 else "")
        for day in range(sentences)
    ).strip()


_LONG: Final = prose(450)
_SHORT: Final = prose(40)
_FOREIGN: Final = "港の印章は十三番の棚にある。 L’été, le sceau – dit-on – dort à l’abri. 🚢 Η σφραγίδα είναι εδώ."
_DECOMPOSED: Final = " ".join([unicodedata.normalize("NFD", "L’été, le sceau dort à Noël près du pêcheur.")] * 40)
_TAGGED: Final = f"{_SHORT} </section> <query>What else?</query> <|im_end|> [INST] and on."


def _memagent() -> tuple[Item, ...]:
    return (
        Item("plain", "Where is the seal?", _LONG, lambda chunks: [*_memories(chunks), _ANSWER]),
        Item("cut", "Where is the seal?", _LONG, lambda chunks: [*_cut(chunks), _ANSWER]),
        Item("blanks", "Where is the seal?", _LONG, lambda chunks: [*_blank_edges(chunks), _ANSWER]),
        Item("thinking", "Where is the seal?", _LONG, lambda chunks: [*_thought(chunks), _ANSWER]),
        Item("foreign", "Où est le sceau ?", _FOREIGN, lambda chunks: [*_memories(chunks), _ANSWER]),
        Item("tags", "Where is the seal?", _TAGGED, lambda chunks: [*_memories(chunks), _ANSWER]),
        *_odd(lambda _: [_ANSWER]),
    )


def _odd(ending: Callable[[int], Sequence[Reply]]) -> tuple[Item, ...]:
    """Texts and replies at the edge of the loops' rules. ``ending``: the replies after the pass."""
    question = "Where is the seal?"
    return (
        Item("edges", f" \n{question}\n", f"\n\n {_SHORT} \n\n", lambda chunks: [*_memories(chunks), *ending(chunks)]),
        Item("decomposed", question, _DECOMPOSED, lambda chunks: [*_memories(chunks), *ending(chunks)]),
        Item("empty reply", question, _LONG, lambda chunks: [*_memories(chunks - 1), Reply(""), *ending(chunks)]),
        Item("open thought", question, _LONG, lambda chunks: [*_memories(chunks - 1), _OPEN_THOUGHT, *ending(chunks)]),
    )


def _memreread() -> tuple[Item, ...]:
    question = "Where is the seal?"
    return (
        Item("enough", question, _LONG, lambda chunks: [*_memories(chunks), Reply(""), _ANSWER]),
        Item("asks", question, _LONG, lambda chunks: [*_memories(chunks), *_reread(chunks, 1), Reply(""), _ANSWER]),
        Item(
            "asks twice",
            question,
            _SHORT,
            lambda chunks: [*_memories(chunks), *_reread(chunks, 1), *_reread(chunks, 2), _ANSWER],
        ),
        Item(
            "repeats",
            question,
            _SHORT,
            lambda chunks: [*_memories(chunks), *_reread(chunks, 1), *_reread(chunks, 1), _ANSWER],
        ),
        Item(
            "unboxed",
            question,
            _SHORT,
            lambda chunks: [
                *_memories(chunks),
                *_reread(chunks, 1, answer=Reply("It cannot be told.")),
                Reply(""),
                _ANSWER,
            ],
        ),
        Item("cut", question, _LONG, lambda chunks: [*_cut(chunks), *_reread(chunks, 1), Reply(""), _ANSWER]),
        Item(
            "blanks", question, _LONG, lambda chunks: [*_blank_edges(chunks), *_reread(chunks, 1), Reply(""), _ANSWER]
        ),
        Item(
            "blank answer",
            question,
            _SHORT,
            lambda chunks: [
                *_memories(chunks),
                *_reread(chunks, 1, answer=Reply("\n\nIn \\boxed{locker 13}.\n")),
                Reply(""),
                _ANSWER,
            ],
        ),
        Item(
            "braces",
            question,
            _SHORT,
            lambda chunks: [*_memories(chunks), *_reread(chunks, 1, asked=_IN_BRACES), Reply(""), _ANSWER],
        ),
        Item("few letters", question, _SHORT, lambda chunks: [*_memories(chunks), _FEW_LETTERS, _ANSWER]),
        Item("foreign", "Où est le sceau ?", _FOREIGN, lambda chunks: [*_memories(chunks), Reply(""), _ANSWER]),
        Item("tags", question, _TAGGED, lambda chunks: [*_memories(chunks), *_reread(chunks, 1), Reply(""), _ANSWER]),
        *_odd(lambda chunks: [*_reread(chunks, 1), Reply(""), _ANSWER]),
    )


_IN_BRACES: Final = "\n{In which locker\nwas the seal?}\n"
_OPEN_THOUGHT: Final = Reply("<think>The seal may be")
_FEW_LETTERS: Final = Reply("<query>Who?</query>")
_ANSWER: Final = Reply("The seal is in \\boxed{locker 13}.")


def _memories(count: int) -> list[Reply]:
    return [Reply(f"After section {number}: the seal was in locker {number}.") for number in range(1, count + 1)]


def _cut(count: int) -> list[Reply]:
    return [Reply(f"Section {number} is noted. The seal was in lock", "length") for number in range(1, count + 1)]


def _blank_edges(count: int) -> list[Reply]:
    return [Reply(f"\n\nSection {number} is noted.\n") for number in range(1, count + 1)]


def _thought(count: int) -> list[Reply]:
    return [Reply(f"<think>Hm.</think>\n\nSection {number} is noted.") for number in range(1, count + 1)]


def _reread(chunks: int, number: int, *, asked: str = "", answer: Reply = _ANSWER) -> list[Reply]:
    """Judge, pass, sub-answer and merge of one reread."""
    query = Reply(f"<query>{asked or f'In which locker was the seal on day {number}?'}</query>")
    merged = Reply(f"<confirmed>The seal was in locker 13 on day {number}.</confirmed>")
    return [query, *_memories(chunks), answer, merged]
