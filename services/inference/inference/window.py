"""The window that a plan serves: the checkpoint's positions, stretched by YaRN, and the loops' prompts that fit in.

Source: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models" (arXiv 2309.00071). Engines
take it as other values of the checkpoint's configuration, in the form of transformers 5: the positions multiplied,
and those that it was trained with among the ``rope_parameters``.
"""

from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from inference.checkpoint import config_of
from inference.engines import EnginePlan
from inference.settings import SettingsRefused
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.profiles import Profile, check_fit, fit

SETTING = "MEMLOOP_SERVE_YARN_FACTOR"
_UNSTRETCHED = ("default", None)


def positions_of(folder: Path, factor: float | None = None) -> int | None:
    """Return the positions of a checkpoint, stretched by ``factor``; None if its configuration does not say."""
    positions = config_of(folder).get("max_position_embeddings")
    return int(positions * (factor or 1.0)) if isinstance(positions, int) else None


def yarn_override(model: str, factor: float | None, *, local: bool) -> Mapping[str, JsonValue] | None:
    """Return what replaces values of the checkpoint's configuration; None without a factor.

    Raises SettingsRefused if the configuration is not at hand, names no positions, or stretches them already.
    """
    if factor is None:
        return None
    if not local:
        raise SettingsRefused(f"{SETTING} needs the checkpoint's configuration: set MEMLOOP_MODEL_PATH to its folder")
    config = config_of(Path(model))
    found = config.get("rope_parameters") or config.get("rope_scaling") or {}  # of transformers 5, or before it
    own = {"rope_theta": config.get("rope_theta"), **(found if isinstance(found, dict) else {})}
    positions = positions_of(Path(model))
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
        "max_position_embeddings": positions_of(Path(model), factor),
        "rope_parameters": {name: value for name, value in parameters.items() if value is not None},
    }


def fitted_profile(plan: EnginePlan, profile: Profile) -> Profile:
    """Return the profile with the sizes that fit the plan's window, or its own window where that is not known yet.

    A model on a hub is checked again after its download, with its own tokenizer. Raises ProfileError.
    """
    window, tokenizer = plan.max_model_len or profile.budget.window_tokens, EstimatingSplitter()
    if plan.local:
        window = plan.max_model_len or positions_of(Path(plan.model), plan.yarn_factor) or window
        tokenizer = TokenizerSplitter((Path(plan.model) / "tokenizer.json").read_bytes())
    check_fit(profile, tokenizer, window_tokens=window)
    return fit(profile, tokenizer, window_tokens=window)
