#!/usr/bin/env python3
"""Brings gitleaks' rules up to date: ``redaction_rules.py`` (``make redaction-rules``).

It reads the pinned version's ``config/gitleaks.toml``, from GitHub or from ``--from FILE``, refuses one with another
SHA-256 than the pinned one, and writes the rules as data for the gateway. To take a newer version, change the two pins.
gitleaks' patterns are RE2's: they are written as Python's, and without the parts that read a text more than a bounded
number of times. A pattern that cannot be written so stops the command. Standard library only.
"""

import argparse
import hashlib
import json
import re
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

VERSION: Final = "v8.30.1"
SHA256: Final = "e163e53b9e7e8a8511e77271e2b323ed057759542a6d988258afe3a1fa329caf"
SOURCE: Final = "https://raw.githubusercontent.com/gitleaks/gitleaks/{}/config/gitleaks.toml"
TARGET: Final = Path(__file__).parents[1] / "services/gateway/gateway/policy/redaction/gitleaks.json"
LEFT_OUT: Final = {
    "curl-auth-header": "reads the text many times; our rules of commands and headers find it",
    "curl-auth-user": "reads the text many times; our rules of commands find it",
    "discord-client-id": "is public",
    "freemius-secret-key": "is bound to a file's name",
    "generic-api-key": "takes 1,400 words that are no secrets to be precise; our rules of names find it",
    "jwt": "our rule also finds those without a signature",
    "jwt-base64": "reads each text of base64; a web token that is encoded twice is rare",
    "kubernetes-secret-yaml": "reads the text many times",
    "nuget-config-password": "is bound to a file's name",
    "private-key": "reads the text many times; our rule also finds keys without an end",
    "sourcegraph-access-token": "takes any commit for a key; our forms of keys have Sourcegraph's",
    "vault-service-token": "takes any attribute of an object `s` for a key; our forms of keys have Vault's",
}
_BEFORE_A_NAME: Final = r"[\w.-]{0,50}?"
"""What may stand before a provider's name. The match's beginning is of no interest, and it makes the search slow."""
_END: Final = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
"""What must follow a value in a file of code. In prose it may be any character that cannot belong to the value."""
_NO_MORE: Final = "(?![A-Za-z0-9])"
_PARTS: Final = re.compile(r"\\.|\[(?:\\.|[^]\\])*\]|[()|]")
"""An escaped character, a class of characters, and what opens, closes and divides a group."""
_UNBOUNDED_ANY: Final = re.compile(r"(?<!\\)\.[*+]|\[\\s\\S[^]]*\][*+{]|\(\?s:\.\)")


def scoped(pattern: str) -> str:
    """Return the pattern with each ``(?i)`` inside it, which Python refuses, around what it applies to."""
    at = pattern.find("(?i)", 1)
    if at < 0:
        return pattern
    end = _end_of_group(pattern, at + 4)
    rest = pattern[at + 4 : end].replace("(?i)", "")
    return scoped(f"{pattern[:at]}(?i:{rest}){pattern[end:]}")


def _end_of_group(pattern: str, start: int) -> int:
    """Return where the group that holds ``start`` ends. Raises ValueError for an alternative in it."""
    depth = 0
    for part in _PARTS.finditer(pattern, start):
        if part[0] == "|" and depth == 0:
            raise ValueError(f"(?i) before an alternative: {pattern}")
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if depth < 0:
            return part.start()
    return len(pattern)


def translated(pattern: str) -> str:
    """Return the pattern as Python's ``re`` reads it. Raises ValueError where it cannot be."""
    for old, new in (
        (_BEFORE_A_NAME, ""),
        (_END, _NO_MORE),
        ("[[:alnum:]]", "[A-Za-z0-9]"),
        (r"\z", r"\Z"),
    ):
        pattern = pattern.replace(old, new)
    python = scoped(pattern)
    if _UNBOUNDED_ANY.search(python):
        raise ValueError(f"it may read the text many times: {pattern}")
    re.compile(python, re.ASCII)
    return python


def rules(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rules on a text's content, with what the gateway needs of them."""
    for rule in config["rules"]:
        if "regex" not in rule or rule["id"] in LEFT_OUT:
            continue
        pattern = translated(rule["regex"])
        group = rule.get("secretGroup", 1 if re.compile(pattern, re.ASCII).groups else 0)
        kept = {"id": rule["id"], "keywords": rule["keywords"], "pattern": pattern, "group": group}
        yield kept | ({"entropy": rule["entropy"]} if "entropy" in rule else {})


def main() -> None:
    """Read the pinned file and write the rules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="file", type=Path, help="a copy of the pinned version's gitleaks.toml")
    file: Path | None = parser.parse_args().file
    if file is None:
        with urllib.request.urlopen(SOURCE.format(VERSION), timeout=60) as answer:
            raw: bytes = answer.read()
    else:
        raw = file.read_bytes()
    if (digest := hashlib.sha256(raw).hexdigest()) != SHA256:
        raise SystemExit(f"The file's SHA-256 is {digest}; pinned for {VERSION} is {SHA256}.")
    lines = ",\n".join(json.dumps(rule) for rule in rules(tomllib.loads(raw.decode())))
    head = {
        "source": SOURCE.format(VERSION),
        "version": VERSION,
        "sha256": SHA256,
        "licence": "MIT, Copyright (c) 2019 Zachary Rice; the text is in gitleaks.LICENSE",
    }
    TARGET.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "rules": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
