"""Arguments of command lines that several evaluations take."""

import argparse
import os
from collections.abc import Sequence

from trainer.data.json_rows import DataError


def engines(urls: Sequence[str] | None, key_variable: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the engines' URLs and the variable of their key: those given, else URL and API_KEY of the environment.

    Raises DataError without either.
    """
    if urls:
        return tuple(dict.fromkeys(urls)), key_variable
    if not (url := os.environ.get("URL")):
        raise DataError("give --engine-url URL, or URL and API_KEY in the environment")
    return (url,), key_variable or "API_KEY"


def positive(text: str) -> int:
    """Parse a number of at least 1. Raises ArgumentTypeError, and ValueError for no number."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
