"""Runs the code blocks of the pages."""

import asyncio
import io
import os
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tests.docs.snippets import Snippet

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:7800"
CURL_TIMED_OUT = 28
"""The end of a `curl --max-time` that follows a stream."""


def run_python(code: str, names: dict[str, Any]) -> str:
    """What the code prints. The blocks of a page share their names, as they would in a file."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "page", "exec"), names)
    return printed.getvalue()


def run_bash(code: str, url: str, folder: Path) -> str:
    """What the commands print, in the repository, with the variables that the pages use."""
    environment = os.environ | {
        "MEMLOOP_URL": url,
        "URL": url,
        "KEY": "unused-on-loopback",
        "ADMIN_KEY": "unused-on-loopback",
        "MEMLOOP_HOME": str(folder),
        "COLUMNS": "120",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=250
    )
    assert done.returncode in (0, CURL_TIMED_OUT), done.stderr
    return done.stdout


async def printed_by(snippet: Snippet, *, url: str, folder: Path, names: dict[str, Any]) -> str:
    """What the block prints when it runs against the gateway at ``url``."""
    code = snippet.code.replace(ADDRESS, url)
    if snippet.language == "python":
        return await asyncio.to_thread(run_python, code, names)
    return await asyncio.to_thread(run_bash, code, url, folder)
