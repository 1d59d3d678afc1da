"""Every command of ours that a page shows exists, with the subcommands and options that the page gives it."""

import io
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.command import main as evaluate
from inference.main import main as inference
from memloop_cli.main import app
from tests.docs.markdown import code

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
COMMAND = re.compile(
    r"(?:^|[`(|]|&&)[ \t]*(?:[A-Z_]+=\S+ )*(?:\S*/bin/)?"  # where a command begins, its variables, its folder
    r"(memloop(?:-evaluate|-inference)?) ((?:[^\n`\\#]|\\\n)*)",
    re.MULTILINE,
)
WORD = re.compile(r"[a-z][a-z-]*")
HIDDEN = ("agent",)
"""A command for hooks, which the help leaves out."""
OPTION = re.compile(r"--[a-z][a-z-]+")


def commands(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The programs of ours in a page's code, with their words."""
    for program, rest in COMMAND.findall(code(text)):
        with suppress(ValueError):  # a quote that does not end is prose
            yield program, tuple(shlex.split(re.split(r"[|;&<>]", rest)[0]))


@cache
def help_of(program: str, path: tuple[str, ...]) -> str:
    """What the program prints for these subcommands and ``--help``; empty when it has no such subcommand."""
    if program == "memloop":
        shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "400", "TERM": "dumb"})
        return shown.stdout if shown.exit_code == 0 else ""
    main: Callable[[], object] = {"memloop-evaluate": evaluate, "memloop-inference": inference}[program]
    return _printed(main, [program, *path, "--help"])


def _printed(main: Callable[[], object], argv: list[str]) -> str:
    before, sys.argv = sys.argv, argv
    try:
        with redirect_stdout(io.StringIO()) as printed, suppress(SystemExit):
            main()
    finally:
        sys.argv = before
    return printed.getvalue()


def subcommands(program: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The leading words that choose a subcommand."""
    path: tuple[str, ...] = words[:1] if words[:1] == HIDDEN else ()
    while len(path) < len(words) and _chooses(help_of(program, path), words[len(path)]):
        path = (*path, words[len(path)])
    return path


def _chooses(help_text: str, word: str) -> bool:
    """Whether the help lists the word as a command: in a line of its own, or as one of the choices in braces."""
    if not WORD.fullmatch(word) or not re.search(r"COMMAND|EVALUATION|\{[a-z,-]+\}", help_text):
        return False
    return re.search(rf"^\W*{re.escape(word)}(?:\s|$)", help_text, re.MULTILINE) is not None


def faults(program: str, words: tuple[str, ...]) -> list[str]:
    """What the program does not have."""
    path = subcommands(program, words)
    shown = help_of(program, path)
    named = {option for word in words for option in OPTION.findall(word.partition("=")[0])}
    lost = [f"{program} {' '.join(path)} has no {option}" for option in sorted(named) if option not in shown]
    begins = bool(words) and WORD.fullmatch(words[0]) is not None
    return lost if path or not begins else [f"{program} has no command {words[0]}", *lost]


FOUND = {page: found for page in PAGES if (found := sorted(set(commands(page.read_text("utf-8")))))}


@pytest.mark.parametrize("page", FOUND, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_exist(page: Path) -> None:
    assert [fault for program, words in FOUND[page] for fault in faults(program, words)] == []


def test_the_number_of_commands_that_are_looked_up() -> None:
    number = sum(len(found) for found in FOUND.values())
    print(f"{number} commands on {len(FOUND)} pages exist")
    assert number > 60


@pytest.mark.parametrize(
    "line",
    [
        "memloop remember --user me",
        "memloop read --fast FILE",
        "memloop-evaluate memory --colour",
        "memloop memory --all",
    ],
)
def test_a_command_that_is_not_there_is_noticed(line: str) -> None:
    ((program, words),) = commands(f"```sh\n{line}\n```\n")
    assert faults(program, words) != []
