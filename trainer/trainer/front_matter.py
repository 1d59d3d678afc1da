"""The front matter of a card: what a README says of its model or data to machines (Hugging Face's model card form)."""

from __future__ import annotations

import yaml

from memloop.wire.chat import Json


def front_matter(fields: Json) -> str:
    """The fields as YAML between its marks, in their order."""
    told = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=120)
    return f"---\n{told}---\n"
