"""Reads what user and model said out of the session files of Claude Code and Codex (JSON lines).

Calls of tools, their outputs, thinking and what the agent itself puts into the user's messages are left out.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, cast

from memloop.wire.chat import Json, is_of_agent
from memloop.wire.memory import MAX_TEXT_CHARS, Source
from memloop_cli.errors import CliError

_ROLES: Final = frozenset({"user", "assistant"})
_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_COMMAND: Final = ("<command-name>", "<command-message>", "<local-command-", "<bash-input>", "<bash-stdout>", "Caveat:")


def turns_in(path: Path) -> list[Source]:
    """Return the session's turns, oldest first. Lines that are no JSON are left out. Raises CliError."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            return list(_turns(lines))
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error.strerror}") from error


def _turns(lines: Iterable[str]) -> Iterator[Source]:
    for line in lines:
        try:
            row: object = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield from _of_row(cast(Json, row))


def _of_row(row: Json) -> Iterator[Source]:
    """Yield the turn of a line: Claude Code holds it in ``message``, Codex in ``payload``.

    Other lines of Claude Code have messages too, such as those of the requests that it sent.
    """
    kind = row.get("type")
    holder = row.get("payload") if kind == "response_item" else row.get("message") if kind in _ROLES else None
    if row.get("isMeta") or row.get("isSidechain") or not isinstance(holder, dict):
        return
    role, text = holder.get("role"), "\n".join(_texts(holder.get("content")))
    if role in _ROLES and text.strip():
        when = row.get("timestamp")
        yield Source.model_validate(
            {"role": role, "content": text[:MAX_TEXT_CHARS], "timestamp": when if isinstance(when, str) else None}
        )


def _texts(content: object) -> Iterator[str]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for part in cast(list[object], parts) if isinstance(parts, list) else ():
        if isinstance(part, dict) and (kind := cast(Json, part)).get("type") in _TEXTS:
            text = kind.get("text")
            if isinstance(text, str) and not is_of_agent(text) and not text.lstrip().startswith(_COMMAND):
                yield text
