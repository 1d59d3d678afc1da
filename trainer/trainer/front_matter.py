"""Formats a card's front matter: a README's machine-readable fields (Hugging Face's model card format)."""

from __future__ import annotations

import yaml

from memloop.wire.chat import Json


def front_matter(fields: Json) -> str:
    """Format the fields as YAML between its marks, in order."""
    yaml_text = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=120)
    return f"---\n{yaml_text}---\n"
