"""The how-to page on agents, followed to the letter: its files, its commands, two steps on real verl."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from trainer.rollout.consistency import contradictions
from trainer.rollout.recipe import load_recipe

PAGE = Path("docs/how-to/train-an-agent.md")
TINY = Path("trainer/recipes/tiny-memagent-cpu.yaml")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_newcomers_agent_written_from_the_page_trains_two_steps(tmp_path: Path) -> None:
    for name in (".venv-trainer", "trainer", "services"):
        (tmp_path / name).symlink_to(Path(name).absolute())
    blocks: list[tuple[str, str]] = _BLOCK.findall(PAGE.read_text("utf-8"))
    for language, text in blocks:
        if language != "bash":
            (tmp_path / text.split()[1]).write_text(text, "utf-8")
    assert len((tmp_path / "my_agent.py").read_text("utf-8").splitlines()) <= 60
    commands = "set -e\n" + "".join(text for language, text in blocks if language == "bash")
    done = subprocess.run(
        ["bash", "-c", commands],
        cwd=tmp_path,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    steps = [line for line in done.stdout.splitlines() if "memloop/reward:" in line]
    assert len(steps) == 2
    for line in steps:
        assert _figure(line, "memloop/rollouts") == 16
        assert _figure(line, "actor/grad_norm") > 0


@pytest.mark.parametrize(
    ("agent", "reason"), [("examples.agents.tool_user:nothing", "has no nothing"), ("nowhere:solve", "nowhere")]
)
def test_a_recipe_with_an_agent_that_does_not_exist_is_reported(agent: str, reason: str) -> None:
    assert any(reason in told for told in contradictions(load_recipe(TINY, [f"memloop.agent={agent}"])))


def test_a_recipe_with_an_agent_runs_it_for_every_row() -> None:
    recipe = load_recipe(TINY, ["memloop.agent=examples.agents.map_reduce:solve"])
    assert contradictions(recipe) == []
    agent = recipe.config.actor_rollout_ref.rollout.agent
    assert agent.default_agent_loop == "agent"
    loops = Path(agent.agent_loop_config_path).read_text("utf-8")
    assert loops.count("FunctionAgent") == loops.count("- name") == 4
    assert str(Path.cwd()) in recipe.environment["PYTHONPATH"].split(os.pathsep)


def _figure(line: str, name: str) -> float:
    found = re.search(rf"{re.escape(name)}:([-\d.e]+)", line)
    assert found, line
    return float(found[1])
