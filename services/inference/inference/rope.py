"""Stretches a model's positions by YaRN, so that it reads longer prompts than it was trained on.

Source: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models" (arXiv 2309.00071). Engines
take it as other values of the checkpoint's configuration, in the form of transformers 5: the positions multiplied,
and those that it was trained with among the ``rope_parameters``.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from inference.settings import SettingsRefused

SETTING = "MEMLOOP_SERVE_YARN_FACTOR"
_UNSTRETCHED = ("default", None)


def positions_of(folder: Path) -> int | None:
    """Return the positions that a checkpoint was trained with; None if its configuration does not say."""
    return _positions(_config(folder))


def yarn_override(model: str, factor: float | None, *, local: bool) -> Mapping[str, JsonValue] | None:
    """Return what replaces values of the checkpoint's configuration; None without a factor.

    Raises SettingsRefused if the configuration is not at hand, names no positions, or stretches them already.
    """
    if factor is None:
        return None
    if not local:
        raise SettingsRefused(f"{SETTING} needs the checkpoint's configuration: set MEMLOOP_MODEL_PATH to its folder")
    config = _config(Path(model))
    found = config.get("rope_parameters") or config.get("rope_scaling") or {}  # of transformers 5, or before it
    own = {"rope_theta": config.get("rope_theta"), **(found if isinstance(found, dict) else {})}
    positions = _positions(config)
    if positions is None:
        raise SettingsRefused(f"{SETTING}: {model}/config.json has no max_position_embeddings")
    if own.get("rope_type", own.get("type")) not in _UNSTRETCHED:
        raise SettingsRefused(f"{SETTING}: {model}/config.json stretches the positions already")
    parameters: dict[str, JsonValue] = {
        "rope_type": "yarn",
        "rope_theta": own.get("rope_theta"),
        "factor": factor,
        "original_max_position_embeddings": positions,
    }
    return {
        "max_position_embeddings": stretched(positions, factor),
        "rope_parameters": {name: value for name, value in parameters.items() if value is not None},
    }


def stretched(positions: int, factor: float | None) -> int:
    """Return how many positions the engine has with this factor."""
    return int(positions * (factor or 1.0))


def _positions(config: Mapping[str, JsonValue]) -> int | None:
    positions = config.get("max_position_embeddings")
    return positions if isinstance(positions, int) else None


def _config(folder: Path) -> Mapping[str, JsonValue]:
    config = cast(JsonValue, json.loads((folder / "config.json").read_text("utf-8")))
    return config if isinstance(config, dict) else {}
