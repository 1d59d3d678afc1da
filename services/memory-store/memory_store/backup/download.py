"""Downloads a file of a server."""

import urllib.request
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from memloop.wire.errors import InvalidRequest, Unavailable

TIMEOUT_S: Final = 3600.0


def download(url: str, target: Path, headers: dict[str, str]) -> None:
    """Write the response to a file. Raises Unavailable."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise InvalidRequest(f"{url!r} is not an http URL.")
    asked = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme was looked at
    try:
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer, target.open("wb") as file:  # noqa: S310
            while block := answer.read(1 << 20):
                file.write(block)
    except OSError as error:
        raise Unavailable(f"{url} returned no snapshot: {error}") from error
