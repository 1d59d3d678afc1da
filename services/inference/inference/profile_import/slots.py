"""Maps the slots of a published template to the loops' own."""

import re
import string
from collections.abc import Mapping

from inference.profile_import.sources import ImportRefused


def our_template(text: str, slots: Mapping[str, str], where: str) -> str:
    """Return a ``str.format`` template with our slots for its own; all other bytes as ``format`` writes them.

    ``slots`` maps each of its slots to ours. Raises ImportRefused when it has others, lacks one, or cannot be expressed
    so.
    """
    mapped: list[str] = []
    seen: set[str] = set()
    for literal, field, spec, conversion in _pieces(text, where):
        mapped.append(literal)
        if field is None:
            continue
        if field not in slots or spec or conversion:
            raise ImportRefused(
                f"{where}: expected the slots {_shown(slots)}; found {{{field}{':' + spec if spec else ''}}}"
            )
        mapped.append(f"{{{slots[field]}}}")
        seen.add(field)
    if seen != set(slots):
        raise ImportRefused(f"{where}: expected the slots {_shown(slots)}; found only {_shown(seen)}")
    template = "".join(mapped)
    # Both render to the same text: a brace that the source escapes must not become a slot of ours
    sent = text.format_map({theirs: f"({number})" for number, theirs in enumerate(slots)})
    marks = {f"{{{ours}}}": f"({number})" for number, ours in enumerate(slots.values())}
    filled = re.sub("|".join(map(re.escape, marks)), lambda mark: marks[mark[0]], template)
    if filled != sent:
        raise ImportRefused(f"{where}: expected a text without slots of ours; found one of {_shown(marks)}")
    return template


def checked_template(template: str, slot: str, where: str) -> str:
    """Return a template that contains ``{slot}`` once. Raises ImportRefused."""
    if template.count(f"{{{slot}}}") != 1:
        raise ImportRefused(f"{where}: expected one place of {{{slot}}}; found {template.count(f'{{{slot}}}')}")
    return template


def _pieces(text: str, where: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(string.Formatter().parse(text))
    except ValueError as error:
        raise ImportRefused(f"{where}: expected a format string; found one that is broken: {error}") from error


def _shown(names: Mapping[str, str] | set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
