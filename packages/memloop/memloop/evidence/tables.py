"""Finds statements in the rows of tables: *The price of the pump is $310* where a column is named *Price*.

A table is a run of lines with cells between ``|`` or tabs. Its first line names the columns, the first cell names the
row. A run of lines such as ``Name: Ada`` is a row, too, which its first value or the line above it names.
"""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memloop.evidence.findings import TextSpan
from memloop.evidence.matching import Claim, in_units_of, is_other_form
from memloop.evidence.units import same_unit, unit_named
from memloop.evidence.words import Word, words_of

_LINE: Final = re.compile(r"[^\n]+")
_FIELD: Final = re.compile(
    r"^[ \t]*(?:[-*•][ \t]+)?([^\W\d_][^\n:：|]{0,40}?)(?<!\d)[ \t]*[:：](?!//)[ \t]*(\S[^\n|]{0,200})$",
    re.MULTILINE,
)
_MOST_CHARS, _MOST_CELLS, _MOST_TITLE = 2000, 40, 120
_RULE: Final = frozenset("|-:=+ \t")


@dataclass(frozen=True, slots=True)
class Row:
    """A row at ``span``, its cells, and the names of the columns."""

    span: TextSpan
    cells: Sequence[str]
    names: Sequence[str]

    @property
    def text(self) -> str:
        """All that a statement about it may say."""
        return " ".join((*self.names, *self.cells))

    def supports(self, claim: Claim, *, commas: bool) -> bool:
        """Return whether a cell supports the claim: the claim names row, column and cell, and says nothing else."""
        if claim.is_whole or any(word.negates for word in claim.words):
            return False
        (corner, *names), (first, *cells) = (
            [[word for word in words_of(cell, commas=commas) if word.content or word.is_light] for cell in line]
            for line in (self.names, self.cells)
        )
        claim = in_units_of([*first, *(word for cell in cells for word in cell)], claim)
        return any(
            _hold(cell, claim.content)
            and _hold(first, claim.content)
            and any(_hold([word], claim.content) for word in name)
            and _hold(claim.content, [*corner, *name, *first, *cell], units={unit_named(word.norm) for word in name})
            and [word.norm for word in claim.content if word.is_value and _hold([word], cell)]
            == [word.norm for word in cell if word.is_value]
            for name, cell in zip(names, cells, strict=True)
            if first and cell
        )


def _hold(words: Sequence[Word], among: Sequence[Word], *, units: Container[str] | None = None) -> bool:
    """Return whether each of the words is among the others.

    With ``units``, a value must have its unit there, or one of these where it has none.
    """
    return all(
        word.is_light
        or any(
            word.norm == it.norm
            and (units is None or same_unit(word.unit, it.unit) or (not it.unit and word.unit in units))
            if word.is_value or it.is_value
            else word.stem == it.stem or is_other_form(word, it)
            for it in among
        )
        for word in words
    )


def records_of(text: str) -> Iterator[Row]:
    """Yield the runs of lines with labels in a text, each as one row, and once more with the line above as its name."""
    fields: list[re.Match[str]] = []
    for field in (*_FIELD.finditer(text), None):
        if (
            field is not None
            and fields
            and field.start() == fields[-1].end() + 1
            and len(fields) < _MOST_CELLS
            and field[1] not in {it[1] for it in fields}
        ):
            fields.append(field)
            continue
        if len(fields) > 1:
            start, stop = fields[0].start(), fields[-1].end()
            title = text[max(0, start - _MOST_TITLE) : start].removesuffix("\n").rpartition("\n")[2]
            for name in ("", title) if title.strip() and not re.search("[:：]", title) else ("",):
                begin, heads = (start - len(title) - 1, [name]) if name else (start, [])
                names, cells = ([*heads, *(it[part] for it in fields)] for part in (1, 2))
                yield Row(TextSpan(begin, stop, text[begin:stop]), cells, names)
        fields = [field] if field else []


def rows_of(text: str) -> Iterator[Row]:
    """Yield the rows of the tables in a text which have as many cells as their table has columns."""
    names: list[str] = []
    end = -1
    for line in _LINE.finditer(text):
        if "|" not in line[0] and "\t" not in line[0]:
            continue
        if line.start() != end + 1:
            names = []
        end = line.end()
        cells = [cell.strip() for cell in re.split(r"[|\t]", line[0].strip().strip("|"))]
        if not names:
            names = cells
        elif len(cells) == len(names) <= _MOST_CELLS and len(line[0]) <= _MOST_CHARS and not _RULE.issuperset(line[0]):
            yield Row(TextSpan(line.start(), end, line[0]), cells, names)
