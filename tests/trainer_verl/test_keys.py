"""What recipes and chart give to verl, vLLM's engine and Ray is read there: a key that is read nowhere does nothing."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.scripts.scripts import start
from verl.utils.config import omega_conf_to_dataclass

from trainer.rollout.recipe import load_recipe

FOLDER = Path("trainer/recipes")
FILES = sorted([*FOLDER.glob("*.yaml"), *(FOLDER / "parts").glob("*.yaml")])
ON_GPUS = sorted(path for path in FOLDER.glob("*.yaml") if not path.stem.endswith("-cpu"))
OF_RAY = {"num_cpus", "num_gpus", "include_dashboard"}
"""Options of ``ray.init``, as verl passes them on."""
OF_MEGATRON = {"recompute_granularity", "recompute_method", "recompute_num_layers"}
"""Fields of Megatron-Core's ``TransformerConfig``; it is not installed here."""


@cache
def names_read() -> frozenset[str]:
    """The names that verl's and the transfer queue's code uses: attributes, keywords and texts, not declarations."""
    used = set[str]()
    for package in ("verl", "transfer_queue"):
        spec = find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations
        for file in Path(spec.submodule_search_locations[0]).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Attribute):
                    used.add(node.attr)
                elif isinstance(node, ast.keyword) and node.arg:
                    used.add(node.arg)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    used.add(node.value)
    return frozenset(used)


def leaves(settings: Mapping[str, Any]) -> Iterator[str]:
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from leaves(value)
        else:
            yield key.removeprefix("+")


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_every_key_of_a_recipe_is_read_by_the_code_that_it_is_for(file: Path) -> None:
    given = set(leaves(yaml.safe_load(file.read_text("utf-8")).get("verl", {})))
    assert given - names_read() - OF_RAY - OF_MEGATRON == set()


@pytest.mark.parametrize("recipe", ON_GPUS, ids=lambda path: path.stem)
def test_verls_own_classes_take_a_recipes_values(recipe: Path) -> None:
    config = load_recipe(recipe).config
    parts = config.actor_rollout_ref
    for part in (parts.actor, parts.rollout, config.algorithm):
        assert omega_conf_to_dataclass(part) is not None


def test_ray_takes_every_parameter_with_which_the_chart_starts_a_node() -> None:
    """KubeRay writes ``rayStartParams`` as ``ray start --KEY=VALUE``."""
    template = Path("deploy/helm/memloop/templates/trainer.yaml").read_text("utf-8")
    [head] = re.findall(r"rayStartParams: \{ (.*) \}", template)
    given = {pair.split(":")[0] for pair in head.split(", ")}
    given |= {
        name for line in re.findall(r"\$logical :?= dict (.*)", template) for name in re.findall(r'"([a-z-]+)"', line)
    }
    assert {"num-cpus", "num-gpus", "dashboard-host"} <= given
    assert {f"--{name}" for name in given} <= {option for each in start.params for option in each.opts}
