"""Words a policy for the memory writer: instructions, categories, and what is never kept."""

from collections.abc import Iterator

from memloop.ports import Splitter
from memloop.profiles import Profile
from memloop.wire.policy import EffectivePolicy

_SHARE = 6
"""The rules get at most a sixth of the window: the conversation needs the rest."""


def with_rules(profile: Profile, policy: EffectivePolicy, splitter: Splitter) -> Profile:
    """Return the profile with the policy's rules as the operator's words; as it is where the policy has none.

    Lines that do not fit into a sixth of the window are left out, the last ones first.
    """
    left = profile.budget.window_tokens // _SHARE
    lines: list[str] = []
    for line in _lines(policy):
        left -= splitter.count(line) + 1
        if left < 0:
            break
        lines.append(line)
    return profile.with_operator("\n".join(lines))


def _lines(policy: EffectivePolicy) -> Iterator[str]:
    yield from (line for line in policy.instructions.splitlines() if line.strip())
    if policy.never:
        yield f"Never keep anything about: {'; '.join(policy.never)}."
    if policy.categories:
        yield "Give each memory one of these categories as its first tag, by its exact name:"
        yield from (_named(category.name, category.description) for category in policy.categories)


def _named(name: str, description: str) -> str:
    words = " ".join(description.split())
    return f"- {name}: {words}" if words else f"- {name}"
