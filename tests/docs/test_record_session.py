"""A recorded terminal session shows the command and what it printed, and loads nothing."""

import re
import subprocess
import sys
from html import unescape

import pytest

from apps.docs.record_session import session


def words(svg: str) -> str:
    """The text of a picture."""
    return unescape(" ".join(re.findall(r"<text [^>]*>([^<]*)</text>", svg))).replace("\xa0", " ")


def test_a_session_shows_the_command_and_its_output() -> None:
    svg = session([sys.executable, "-c", "print('The key <hangs> in the boathouse.')"], shown="memloop ask")
    assert "$ " in words(svg)
    assert "memloop ask" in words(svg)
    assert "The key <hangs> in the boathouse." in words(svg)


def test_a_session_keeps_colours() -> None:
    svg = session([sys.executable, "-c", r"print('\x1b[32mkept\x1b[0m left')"])
    assert len(set(re.findall(r'class="(session-r\d+)"', svg))) >= 3


def test_a_picture_loads_nothing() -> None:
    svg = session([sys.executable, "-c", "print('done')"])
    assert "url(http" not in svg
    assert "@font-face" not in svg


def test_a_command_that_fails_is_not_drawn() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        session([sys.executable, "-c", "raise SystemExit(3)"])
