"""Runs a command and draws its terminal session as an SVG. Run: ``python -m apps.docs.record_session SVG COMMAND …``.

The picture shows the command after a prompt and what it printed, with its colours. Blank lines at the end are dropped.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

WIDTH: Final = 110
"""Columns of the terminal."""
_FONT_FROM_ELSEWHERE: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def session(command: Sequence[str], *, shown: str | None = None) -> str:
    """Return the SVG of one command. ``shown``: the words after the prompt, the command's own by default.

    Raises CalledProcessError if the command fails.
    """
    environment = {**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    done = subprocess.run(  # noqa: S603 - the caller's own command
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
    )
    return drawn(shown or shlex.join(command), done.stdout.decode())


def drawn(shown: str, printed: str) -> str:
    """Return the SVG of a prompt with these words and of what was printed."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold green"), (shown, "bold")))
    console.print(Text.from_ansi(printed.rstrip()))
    return _FONT_FROM_ELSEWHERE.sub("", console.export_svg(title="memloop", unique_id="session"))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(session(sys.argv[2:]) + "\n", "utf-8")
