"""A property test draws the same examples whichever tests ran before it."""

import subprocess
import sys
from typing import Final

_DRAWN: Final = """
from hypothesis import given, strategies as st
from tests.steady import draw_steadily

draw_steadily()
drawn = []

@given(st.text(), st.integers())
def draw(text: str, number: int) -> None:
    drawn.append((text, number))

draw()
print(len(drawn), drawn)
"""


def _drawn_after(before: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", before + _DRAWN], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_loaded_modules_do_not_change_the_examples() -> None:
    alone = _drawn_after("")
    assert alone.startswith("100 ")
    assert _drawn_after("import memloop.wire.chat, memloop.wire.fields, memloop.loops.memagent\n") == alone
