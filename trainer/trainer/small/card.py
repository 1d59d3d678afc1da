"""Fills the model card's table: ``python -m trainer.small.card CARD EVALUATION…``.

An evaluation is a file with the last line of ``python -m trainer.small evaluate``; each becomes a column.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

_BEGIN, _END = "<!-- figures -->\n", "<!-- /figures -->"
_ROWS: Final = {
    "writes": "memories of a chat all right",
    "false of the user": "a memory false of the user (less is better)",
    "small talk stored": "small talk stored (less is better)",
    "relate updates": "an update of a memory recognised",
    "relate new": "a near memory of another matter left alone",
    "answers known": "answers that a note holds",
    "abstains": "says that no note tells",
    "read": "a section read: the memory after it exactly right",
    "read keeps": "a planted fact of a section kept, word for word",
    "read keeps in novels": "a sentence of a novel kept that answers a question, word for word",
    "reading answers": "the answer of a short reading",
    "everyday stored": "everyday statements of another hand, stored",
    "everyday answered": "the same, answered",
    "everyday answered among six": "the same, answered among six told",
    "by hand stored": "a hundred statements of one more hand, stored",
    "by hand answered": "the same, answered",
    "by hand answered among six": "the same, answered among six told",
    "by hand small talk stored": "its small talk stored (less is better)",
    "general questions refused": "questions that no note matters to, asked below notes and refused (less is better)",
    "by hand updates recognised": "its updates recognised",
    "by hand others kept": "other memories beside them left alone",
    "by hand updates answered": "the new value answered after them",
}


def fill(card: Path, evaluations: Sequence[Path]) -> None:
    """Write the table between the card's marks. Raises ValueError for a card without them."""
    before, begun, rest = card.read_text("utf-8").partition(_BEGIN)
    _, ended, after = rest.partition(_END)
    if not (begun and ended):
        raise ValueError(f"{card} has no place for figures: {_BEGIN.strip()} and {_END}")
    measured: list[dict[str, Any]] = [json.loads(file.read_text("utf-8").splitlines()[-1]) for file in evaluations]
    rows = [
        ["", *(_title(each) for each in measured)],
        ["---"] * (len(measured) + 1),
        *([said, *(_share(each, name) for each in measured)] for name, said in _ROWS.items()),
    ]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    card.write_text(f"{before}{begun}\n{table}\n{ended}{after}", "utf-8")


def _title(measured: dict[str, Any]) -> str:
    base = "the base with examples in its prompt" if measured["examples"] else "the base"
    return "memloop-small" if measured["adapter"] else base


def _share(measured: dict[str, Any], name: str) -> str:
    if name not in measured:
        return "not measured"
    share, low, high, of = measured[name]
    return f"{share:.0%} ({low * 100:.0f} to {high * 100:.0f}; {of})"


def main() -> None:
    """Fill the table."""
    parser = argparse.ArgumentParser(prog="trainer.small.card")
    parser.add_argument("card", type=Path)
    parser.add_argument("evaluations", type=Path, nargs="+")
    options = parser.parse_args()
    fill(options.card, options.evaluations)


if __name__ == "__main__":
    main()
