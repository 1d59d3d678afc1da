#!/usr/bin/env python3
"""Runs uv with pip's configuration, which uv itself does not read: ``uv.py pip install …``.

It runs in the environment of pip and uv. Standard library only.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

BIN: Final = Path(sys.executable).parent
SECTIONS: Final = ("global", "install", ":env:")
"""Of pip's configuration, a later one over an earlier one."""
VARIABLES: Final[Mapping[str, str]] = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "proxy": "ALL_PROXY",
    "cert": "SSL_CERT_FILE",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
"""What an option of pip's is called in uv's environment."""


def environment(configuration: str) -> dict[str, str]:
    """The variables for uv, from the output of ``pip config list``."""
    values = {VARIABLES[option]: value for option, value in _options(configuration) if option in VARIABLES}
    if "UV_FIND_LINKS" in values:
        values["UV_FIND_LINKS"] = ",".join(values["UV_FIND_LINKS"].split())
    alike = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # as in pip, no index hides what another one has
    return alike | {name: " ".join(value.split()) for name, value in values.items()}


def _options(configuration: str) -> Iterator[tuple[str, str]]:
    lines = [line.partition("=") for line in configuration.splitlines() if "=" in line]
    for section in SECTIONS:
        for key, _, value in lines:
            if key.startswith(f"{section}."):
                yield key.removeprefix(f"{section}."), str(ast.literal_eval(value))


def main() -> None:
    """Replace this process by uv."""
    told = subprocess.run([BIN / "pip", "config", "list"], capture_output=True, text=True, check=True)
    os.execve(BIN / "uv", ["uv", *sys.argv[1:]], environment(told.stdout) | os.environ)  # a variable of uv's own wins


if __name__ == "__main__":
    main()
