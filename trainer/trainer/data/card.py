"""Writes a data set's card: a README with front matter for the Hugging Face hub, and the making of the data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from memloop.wire.chat import Json
from trainer.front_matter import front_matter

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


CONVERSATION_COLUMNS = {
    "data_source": "source of the conversation",
    "messages": "the messages that the served loop sent and received",
    "tools": "the tools of the calls, as JSON; null without any",
    "enable_thinking": "whether the chat template lets the model think first",
    "learned": "the places in `messages`, from 0, of the replies to learn",
    "extra_info": "`index`, `id`, and the `kind` of turn",
}


@dataclass(frozen=True, slots=True)
class Card:
    """A data set's card. ``made_by`` is the command with options; ``files`` maps splits to file and row count."""

    name: str
    what: str
    license: str
    made_by: Mapping[str, object]
    files: Mapping[str, tuple[str, int]]
    columns: Mapping[str, str] = field(default_factory=dict[str, str])

    def write(self, folder: Path) -> None:
        """Write ``README.md`` into the folder."""
        (folder / "README.md").write_text(self.text(), "utf-8")

    def text(self) -> str:
        """Render front matter and body."""
        return f"{front_matter(self._fields())}\n{self._body()}"

    def _fields(self) -> Json:
        rows = sum(count for _, count in self.files.values())
        size = next((name for most, name in _SIZES if rows < most), "n>1M")
        configs: list[JsonValue] = [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": path} for split, (path, _) in self.files.items()],
            }
        ]
        return {
            "pretty_name": self.name,
            "license": self.license,
            "language": ["en"],
            "task_categories": ["question-answering"],
            "size_categories": [size],
            "tags": ["long-context", "memory", "reinforcement-learning"],
            "configs": configs,
        }

    def _body(self) -> str:
        splits = "\n".join(f"| {split} | `{path}` | {count:,} |" for split, (path, count) in self.files.items())
        columns = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in self.columns.items())
        made = json.dumps(dict(self.made_by), indent=2, default=str, ensure_ascii=False)
        return (
            f"# {self.name}\n\n{self.what}\n\n"
            f"| split | file | rows |\n|---|---|---|\n{splits}\n\n"
            f"## Columns\n\n| column | meaning |\n|---|---|\n{columns}\n\n"
            f"## How it was made\n\n```json\n{made}\n```\n"
        )


def write_conversations_card(
    folder: Path, name: str, made: Mapping[str, int], options: Mapping[str, object], *, license_: str
) -> None:
    """Write the card of conversations to imitate, one Parquet file per split."""
    Card(
        name=name,
        what="Conversations with replies to imitate, each reply after the prompt that the served loop sends.",
        license=license_,
        made_by=options,
        files={split: (f"{split}.parquet", count) for split, count in made.items()},
        columns=CONVERSATION_COLUMNS,
    ).write(folder)
