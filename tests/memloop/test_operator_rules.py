"""An operator's rules in the memory writer's prompt: after the system's own words, and nowhere without rules."""

from dataclasses import replace
from pathlib import Path

import pytest

from memloop.profiles import load_profile


@pytest.mark.parametrize("name", ["default", "extractor", "tiny", "tiny-writer"])
def test_without_rules_a_profile_is_itself(name: str) -> None:
    profile = load_profile(name)
    assert profile.with_operator("") is profile


def test_rules_follow_the_system_prompt_and_leave_the_conversation_alone() -> None:
    profile = load_profile("default")
    before = profile.render("memory", conversation="[user]: Hi")
    after = profile.with_operator("Keep {conversation} <think>only</think> travel.").render(
        "memory", conversation="[user]: Hi"
    )
    assert after[1] == before[1]
    words = str(after[0].content).removeprefix(str(before[0].content))
    assert words.startswith("\n\nRules of the operator")
    assert words.endswith("Keep {conversation} &lt;think>only&lt;/think> travel.")


def test_a_prompt_without_a_system_gets_the_rules_as_its_system() -> None:
    profile = load_profile("default")
    bare = replace(profile, prompts={**profile.prompts, "memory": replace(profile.prompts["memory"], system=None)})
    system, _ = bare.with_operator("Keep travel.").render("memory", conversation="x")
    assert (system.role, str(system.content).endswith("Keep travel.")) == ("system", True)


def test_a_profile_may_word_the_rules_itself(tmp_path: Path) -> None:
    (tmp_path / "operator.txt").write_text("Ours: {rules}")
    manifest = 'name = "mine"\nversion = "1"\nextends = "default"\n'
    (tmp_path / "manifest.toml").write_text(
        f'{manifest}[prompts.operator]\ntemplate = "operator.txt"\nslots = ["rules"]\n'
    )
    system, _ = load_profile(tmp_path).with_operator("Keep travel.").render("memory", conversation="x")
    assert str(system.content).endswith("\n\nOurs: Keep travel.")
