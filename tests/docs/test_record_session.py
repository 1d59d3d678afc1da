"""A recorded terminal session shows the command and what it printed, and loads nothing."""

import re
import subprocess
from html import unescape

import pytest

from apps.docs.record_session import session


def words(svg: str) -> str:
    """The text of a picture."""
    return unescape(" ".join(re.findall(r"<text [^>]*>([^<]*)</text>", svg))).replace("\xa0", " ")


def test_a_session_shows_the_command_and_its_output() -> None:
    svg = session(["echo 'The key <hangs> in the boathouse.' | rev | rev", "expr 480 + 2"])
    assert words(svg).count("$ ") == 2
    assert "| rev | rev" in words(svg)
    assert "The key <hangs> in the boathouse." in words(svg)
    assert words(svg).rstrip().endswith("482")


def test_a_session_keeps_colours() -> None:
    svg = session([r"printf '\x1b[32mkept\x1b[0m left\n'"])
    assert len(set(re.findall(r'class="(session-r\d+)"', svg))) >= 3


def test_a_picture_loads_nothing() -> None:
    svg = session(["echo done"])
    assert "url(http" not in svg
    assert "@font-face" not in svg


def test_a_command_that_fails_is_not_drawn() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        session(["exit 3"])
