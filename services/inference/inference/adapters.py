"""LoRA adapters, as a setting names them and as their folder describes them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from inference.engines import Adapter
from inference.settings import SettingsRefused


def adapters_of(setting: str) -> tuple[Adapter, ...]:
    """``name=folder`` pairs with commas between them. Raises SettingsRefused."""
    return tuple(_adapter(part.strip()) for part in setting.split(",") if part.strip())


def adapter_rank(adapters: Sequence[Adapter]) -> int | None:
    """Return the largest rank in the adapters' folders; None leaves the engine's own limit."""
    ranks = [rank for adapter in adapters if (rank := _rank(Path(adapter.path))) is not None]
    return max(ranks, default=None)


def _adapter(part: str) -> Adapter:
    name, mark, path = part.partition("=")
    if not (mark and name.strip() and path.strip()):
        raise SettingsRefused(f"MEMLOOP_SERVE_LORA takes name=folder, not {part!r}")
    return Adapter(name.strip(), path.strip())


def _rank(folder: Path) -> int | None:
    try:
        config = cast(object, json.loads((folder / "adapter_config.json").read_text("utf-8")))
    except (OSError, ValueError):
        return None
    rank = cast(dict[str, object], config).get("r") if isinstance(config, dict) else None
    return rank if isinstance(rank, int) else None
