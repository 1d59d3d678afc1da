"""Runs commands and draws their terminal session as an SVG. Run: ``python -m apps.docs.record_session SVG LINE …``.

Each line is one of the shell's. The picture shows each after a prompt and what it printed, with its colours. Blank
lines at the end are dropped.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

WIDTH: Final = 110
"""Columns of the terminal."""
_FONT_FROM_ELSEWHERE: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def session(lines: Sequence[str]) -> str:
    """Return the SVG of the shell's lines, run one after the other. Raises CalledProcessError if one fails."""
    environment = {**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TTY_INTERACTIVE": "0"}
    return drawn([(line, _printed(line, environment)) for line in lines])


def drawn(steps: Sequence[tuple[str, str]]) -> str:
    """Return the SVG of prompts, each with its line and what was printed."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    for number, (line, printed) in enumerate(steps):
        if number:
            console.print()
        console.print(Text.assemble(("$ ", "bold green"), (line, "bold")))
        console.print(Text.from_ansi(printed.rstrip()))
    return _FONT_FROM_ELSEWHERE.sub("", console.export_svg(title="memloop", unique_id="session"))


def _printed(line: str, environment: Mapping[str, str]) -> str:
    command = ("bash", "-euo", "pipefail", "-c", line)
    done = subprocess.run(  # noqa: S603 - the caller's own commands
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
    )
    return done.stdout.decode()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(session(sys.argv[2:]) + "\n", "utf-8")
