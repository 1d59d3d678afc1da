"""A recipe: a YAML file that says what differs from verl's own configuration, checked against that.

base: ppo_trainer            which of verl's configurations it stands on
groups: {model_engine: dp}   which of verl's configuration groups to take (Hydra's)
environment: {...}           environment variables of all processes
memloop: {...}               our own settings (LoopSettings)
verl: {...}                  what differs; a key that is not there is an error, unless it begins with + (as Hydra's)
"""

# omegaconf and hydra are untyped in part.
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainer.rollout.settings import LoopSettings

PLUGIN = "trainer.rollout.plugin"
_ADD = "+"
_AGENT_LOOPS = Path(__file__).parent / "agent_loops.yaml"


class RecipeError(ValueError):
    """A recipe that cannot be run; the message says which file, and why."""


class _Recipe(BaseModel):
    model_config = ConfigDict(extra="forbid")

    base: str = "ppo_trainer"
    groups: dict[str, str] = Field(default_factory=dict[str, str])
    environment: dict[str, str] = Field(default_factory=dict[str, str])
    memloop: LoopSettings = LoopSettings()
    verl: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Composed:
    """A whole configuration, and the environment of all its processes."""

    config: DictConfig
    environment: dict[str, str]


def load_recipe(file: Path, overrides: Sequence[str] = ()) -> Composed:
    """Compose the recipe with ``overrides`` (``data.train_batch_size=8``, ``memloop.updates=2``).

    Raises RecipeError when the file is none, or names a key that verl's configuration has not.
    """
    try:
        recipe = _Recipe.model_validate(OmegaConf.to_container(_read(file)))
        given = _dotted(overrides)
        settings = LoopSettings.model_validate(recipe.memloop.model_dump() | given.pop("memloop", {}))
        config = _base(recipe)
        _put(config, recipe.verl)
        _put(config, given)
    except (OSError, OmegaConfBaseException, HydraException, ValidationError, RecipeError) as error:
        raise RecipeError(f"{file}: {error}") from error
    return _completed(config, recipe.environment, settings)


def _read(file: Path) -> DictConfig:
    """The file, over the one that it extends."""
    own = cast(DictConfig, OmegaConf.load(file))
    parent: str | None = own.pop("extends", None)
    return own if parent is None else cast(DictConfig, OmegaConf.merge(_read(file.parent / parent), own))


def _base(recipe: _Recipe) -> DictConfig:
    """Verl's own configuration; it refuses keys that it has not."""
    groups = [f"{name}={choice}" for name, choice in recipe.groups.items()]
    with initialize_config_dir(str(_verl() / "trainer" / "config"), version_base=None):
        return compose(recipe.base, overrides=groups)


def _put(config: DictConfig, changes: Mapping[str, Any], *, where: str = "") -> None:
    """Merge changes into the configuration, which is changed. Raises RecipeError on a key that it has not."""
    for key, value in changes.items():
        name, known = key.removeprefix(_ADD), key.removeprefix(_ADD) in config.keys()  # noqa: SIM118 -- `in` hides ???
        if not known and not key.startswith(_ADD):
            raise RecipeError(f"verl's configuration has no {where}{name} (to add a key, write +{name})")
        node: Any = config._get_node(name) if known else None  # noqa: SLF001 -- the value may be an open interpolation
        if isinstance(value, Mapping) and isinstance(node, DictConfig) and node:
            _put(node, cast(Mapping[str, Any], value), where=f"{where}{name}.")
        else:
            with open_dict(config):
                config[name] = value


def _dotted(overrides: Sequence[str]) -> dict[str, Any]:
    """``a.b=1`` and ``+a.b=1`` as nested mappings, the ``+`` at the key that is added."""
    lines: list[str] = []
    for line in overrides:
        path, equals, value = line.partition("=")
        if not equals:
            raise RecipeError(f"an override reads KEY=VALUE, not {line!r}")
        if path.startswith(_ADD):
            parent, dot, name = path.removeprefix(_ADD).rpartition(".")
            path = f"{parent}{dot}{_ADD}{name}"
        lines.append(f"{path}={value}")
    return cast(dict[str, Any], OmegaConf.to_container(OmegaConf.from_dotlist(lines)))


def _verl() -> Path:
    spec = find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise RecipeError("verl is not installed: training has an environment of its own (`make setup-trainer`)")
    return Path(spec.submodule_search_locations[0])


def _completed(config: DictConfig, environment: dict[str, str], settings: LoopSettings) -> Composed:
    everywhere = {"VERL_USE_EXTERNAL_MODULES": PLUGIN, **environment}
    with open_dict(config):
        config.memloop = settings.model_dump()
        config.actor_rollout_ref.rollout.agent.agent_loop_config_path = str(_AGENT_LOOPS)
        config.ray_kwargs.ray_init.runtime_env.env_vars = everywhere
    return Composed(config, everywhere)
