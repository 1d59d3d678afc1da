"""Holds a published checkpoint's own prompts between their source and the profile."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from inference.profile_import.sources import SourceFile
from memloop.wire.chat import Json

Kind: TypeAlias = Literal[
    "memreader-card", "memagent", "memagent-table", "memagent-direct", "memreread", "memos-reader"
]
Entry: TypeAlias = str | int | float | bool | tuple[str, ...]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Imported:
    """The texts of a profile by file name, and the manifest's other entries.

    ``settings`` are the manifest's own values, ``prompts`` those of each prompt, ``budget`` those of the window. They
    hold the published numbers, so that our defaults do not change them. ``left``: texts of the sources that
    other examples show and the profile does not use, each in a few words. ``turns`` are the lines of a conversation.
    """

    kind: Kind
    sources: tuple[SourceFile, ...]
    texts: Mapping[str, str]
    settings: Mapping[str, str]
    prompts: Mapping[str, Mapping[str, Entry]]
    budget: Mapping[str, int] = field(default_factory=dict[str, int])
    left: tuple[str, ...] = ()
    turns: Mapping[str, str] = field(default_factory=dict[str, str])

    def files(self) -> dict[str, str]:
        named = {"name": self.kind, "version": self.version, "extends": "default", **self.settings}
        tables: dict[str, Mapping[str, Entry]] = {"": {**named, "without": _UNTRAINED}}
        if self.budget:
            tables["budget"] = self.budget
        if self.turns:
            tables["turns"] = self.turns
        tables |= {f"prompts.{prompt}": values for prompt, values in self.prompts.items()}
        tables["origin"] = {"kind": self.kind}
        tables["origin.sources"] = {source.name: source.sha256 for source in self.sources}
        tables["origin.texts"] = {name: _sha256(text) for name, text in self.texts.items()}
        return {
            "manifest.toml": (_COMMENT + "\n".join(_table(name, values) for name, values in tables.items())),
            **self.texts,
        }

    @property
    def version(self) -> str:
        """Return twelve digits of the hash of all sources."""
        return _sha256("".join(source.sha256 for source in self.sources))[:12]


_UNTRAINED: Final = ("relate",)
"""Prompts of the default profile that ask for a call which no published checkpoint was trained to answer."""
_COMMENT: Final = """\
# Imported from the files under [origin.sources], which have these SHA-256. The texts are theirs, byte for byte: a text
# that no longer has its hash under [origin.texts] is refused. The checkpoint was not trained on the prompts under
# "without"; clear that list to use Memloop's.
"""


def as_json_file(tools: list[Json]) -> str:
    """Format tool definitions as a file, in their order and wording."""
    return json.dumps(tools, ensure_ascii=False, indent=2)


def _table(name: str, values: Mapping[str, Entry]) -> str:
    lines = [f"{(key if key.isidentifier() else _written(key))} = {_written(value)}" for key, value in values.items()]
    return "\n".join(([f"[{name}]"] if name else []) + lines) + "\n"


def _written(value: Entry) -> str:
    """Format a value as TOML, which writes these kinds as JSON does, except for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
