"""Reads a recipe: a YAML file of differences from verl's own configuration, validated against it.

base: ppo_trainer            which of verl's configurations it stands on
groups: {model_engine: dp}   which of verl's configuration groups to take (Hydra's)
environment: {...}           environment variables of all processes
memloop: {...}               our own settings (LoopSettings)
estimate: {...}              what its memory and hours are estimated with (Assumptions); a run does not look at it
verl: {...}                  what differs; a key that is not there is an error, unless it begins with + (as Hydra's)
"""

# omegaconf and hydra are partly untyped.
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memloop.profiles import ProfileError
from trainer.estimate.assumptions import Assumptions
from trainer.rollout.settings import LoopSettings

PLUGIN = "trainer.rollout.plugin"
_KEPT = "trainer.rollout.kept.Kept"
_LOOP_ROWS = "pkg://trainer.rollout.loop_rows"
_ADD = "+"
_OURS = ("environment", "memloop", "estimate")
"""Sections of a recipe that are not verl's; an override of one starts with its name."""
_AGENT_LOOPS = Path(__file__).parent / "agent_loops.yaml"
_AGENT_FUNCTIONS = Path(__file__).parent / "agent_functions.yaml"
AGENT = "agent"
"""What verl calls the loop of ``memloop.agent``."""


class RecipeError(ValueError):
    """The recipe cannot be run; the message names the file and the reason."""


class _Recipe(BaseModel):
    model_config = ConfigDict(extra="forbid")

    base: str = "ppo_trainer"
    groups: dict[str, str] = Field(default_factory=dict[str, str])
    environment: dict[str, str] = Field(default_factory=dict[str, str])
    memloop: LoopSettings = LoopSettings()
    estimate: Assumptions = Assumptions()
    verl: dict[str, Any]

    def changed(self, sections: Mapping[str, Mapping[str, Any]]) -> _Recipe:
        """Return a copy with values over those of its own sections. Raises pydantic's ValidationError."""
        own = self.model_dump()
        return _Recipe.model_validate(own | {name: own[name] | dict(values) for name, values in sections.items()})


@dataclass(frozen=True, slots=True)
class Composed:
    """A complete configuration, and the environment of all its processes."""

    config: DictConfig
    environment: dict[str, str]
    settings: LoopSettings
    assumptions: Assumptions

    @property
    def loops(self) -> tuple[str, ...]:
        """Return the loops that the recipe trains, its own first."""
        own: Any = self.config.actor_rollout_ref.rollout.agent.default_agent_loop
        return tuple(dict.fromkeys((str(own), *self.settings.loops)))


def load_recipe(file: Path, overrides: Sequence[str] = ()) -> Composed:
    """Compose the recipe with ``overrides`` (``data.train_batch_size=8``, ``memloop.updates=2``).

    Raises RecipeError when the file is not a recipe, or names a key that verl's configuration lacks.
    """
    try:
        recipe = _Recipe.model_validate(OmegaConf.to_container(_read(file)))
        given = _dotted(overrides)
        recipe = recipe.changed({name: given.pop(name) for name in _OURS if name in given})
        config = _base(recipe)
        _put(config, recipe.verl)
        _put(config, given)
        return _completed(config, recipe.environment, recipe.memloop.pinned(), recipe.estimate)
    except (OSError, OmegaConfBaseException, HydraException, ValidationError, ProfileError, RecipeError) as error:
        raise RecipeError(f"{file}: {error}") from error


def _read(file: Path) -> DictConfig:
    """Merge the file over those that it extends; later ones override earlier ones."""
    own = cast(DictConfig, OmegaConf.load(file))
    named: Any = own.pop("extends", None) or []
    parents = [named] if isinstance(named, str) else list(named)
    return cast(DictConfig, OmegaConf.merge(*(_read(file.parent / str(parent)) for parent in parents), own))


def _base(recipe: _Recipe) -> DictConfig:
    """Return verl's own configuration; it rejects unknown keys."""
    return deepcopy(_composed(recipe.base, tuple(f"{name}={choice}" for name, choice in recipe.groups.items())))


@cache
def _composed(base: str, groups: tuple[str, ...]) -> DictConfig:
    """Compose the base configuration, cached: it takes half a second, and many recipes share one."""
    with initialize_config_dir(str(_verl() / "trainer" / "config"), version_base=None):
        return compose(base, overrides=list(groups))


def _put(config: DictConfig, changes: Mapping[str, Any], *, where: str = "") -> None:
    """Merge changes into the configuration in place. Raises RecipeError on an unknown key."""
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
    """Parse ``a.b=1`` and ``+a.b=1`` into nested mappings, the ``+`` at the added key."""
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


def _completed(
    config: DictConfig, environment: dict[str, str], settings: LoopSettings, assumed: Assumptions
) -> Composed:
    everywhere = {"VERL_USE_EXTERNAL_MODULES": PLUGIN, **environment}
    if settings.agent:
        everywhere["PYTHONPATH"] = _with_working_folder(everywhere.get("PYTHONPATH", os.environ.get("PYTHONPATH", "")))
    with open_dict(config):
        config.memloop = settings.model_dump()
        if settings.checkpoints:
            config.trainer.checkpoint_callback_class = _KEPT
        _name_loops(config.actor_rollout_ref.rollout.agent, of_function=settings.agent is not None)
        config.ray_kwargs.ray_init.runtime_env.env_vars = everywhere
        if settings.agent is None:
            config.data.custom_cls = {"path": _LOOP_ROWS, "name": "LoopRows"}
            config.data.loop_profile = settings.profile
            config.data.default_loop = config.actor_rollout_ref.rollout.agent.default_agent_loop
    return Composed(config, everywhere, settings, assumed)


def _name_loops(agent: Any, *, of_function: bool) -> None:
    """Choose what verl runs for each row."""
    agent.agent_loop_config_path = str(_AGENT_FUNCTIONS if of_function else _AGENT_LOOPS)
    if of_function:
        agent.default_agent_loop = AGENT


def _with_working_folder(python_path: str) -> str:
    """Return the path of modules with the folder in which the run starts, so that every process finds the agent."""
    return os.pathsep.join(filter(None, [python_path, str(Path.cwd())]))
