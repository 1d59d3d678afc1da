r"""Pydantic's patterns compile to automata: each repetition of a Unicode class such as ``\w`` costs about 100 KB."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PATTERN = re.compile(r'pattern=r?f?"([^"]*)"')
_REPEATED_CLASS = re.compile(r"(?:\\[wdsWDS]|\[[^]]*\\[wdsWDS][^]]*\])\{")


def test_no_field_repeats_a_unicode_class_a_counted_number_of_times() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {pattern}"
        for folder in ("packages", "services", "apps", "trainer", "evaluation")
        for path in (ROOT / folder).rglob("*.py")
        for pattern in _PATTERN.findall(path.read_text(encoding="utf-8"))
    ]
    assert found
    assert [line for line in found if _REPEATED_CLASS.search(line)] == []
