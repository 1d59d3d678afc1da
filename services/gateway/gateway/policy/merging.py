"""Reads the operator's policies (``MEMLOOP_MEMORY_POLICY_FILE``, TOML), and merges those of all levels that apply.

The levels are the service's, the tenant's, the agent's, the user's and the app's.
"""

import tomllib
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

from pydantic import Field, ValidationError

from memloop.wire.base import Wire
from memloop.wire.memory import MemoryType
from memloop.wire.policy import (
    EffectivePolicy,
    KeepPolicy,
    Kind,
    KindNames,
    MemoryPolicy,
    RedactionPolicy,
    Retention,
    kinds_of,
)


class TenantPolicies(MemoryPolicy):
    """A tenant's table, with tables of its agents and users."""

    agents: dict[str, MemoryPolicy] = Field(default_factory=dict[str, MemoryPolicy])
    users: dict[str, MemoryPolicy] = Field(default_factory=dict[str, MemoryPolicy])


class FiledPolicies(Wire):
    """The file: a table ``all`` for every tenant, and tables of tenants."""

    all: MemoryPolicy = MemoryPolicy()
    tenants: dict[str, TenantPolicies] = Field(default_factory=dict[str, TenantPolicies])

    def at(self, tenant: str, level: str) -> MemoryPolicy | None:
        """Return the file's policy of a level: ``tenant``, ``agent:…`` or ``user:…``."""
        filed = self.tenants.get(tenant)
        if filed is None or level == "tenant":
            return filed
        kind, _, name = level.partition(":")
        return (filed.agents if kind == "agent" else filed.users).get(name)


def read_policies(path: Path | None) -> FiledPolicies:
    """Read the file; nothing without one. Raises ValueError, which names the file and the place."""
    if path is None:
        return FiledPolicies()
    try:
        return FiledPolicies.model_validate(tomllib.loads(path.read_text("utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"MEMLOOP_MEMORY_POLICY_FILE: {path}: {where}: {first['msg']}") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"MEMLOOP_MEMORY_POLICY_FILE: {path}: {error}") from error


def merged(
    policies: Sequence[MemoryPolicy], own: KeepPolicy | None, *, default_kinds: frozenset[Kind]
) -> EffectivePolicy:
    """Return the settings in force. ``policies`` are the operator's, the general one first.

    ``own`` is the application's for its user: it adds words, phrases and categories, and shortens retention.
    """
    everything: list[KeepPolicy] = [*policies, *([own] if own is not None else [])]
    enabled, kinds = True, cast("KindNames | None", None)
    for redaction in (policy.redaction for policy in policies):
        enabled = enabled if redaction.enabled is None else redaction.enabled
        kinds = kinds if redaction.kinds is None else redaction.kinds
    named = default_kinds if kinds is None else kinds_of(kinds)
    categories = {category.name.casefold(): category for one in everything for category in one.categories}
    rules = {_place(rule): rule for policy in policies for rule in policy.retention}
    for rule in own.retention if own is not None else ():
        known = rules.get(_place(rule))
        rules[_place(rule)] = rule if known is None or rule.days < known.days else known
    return EffectivePolicy(
        redaction=RedactionPolicy.model_construct(enabled=enabled, kinds=tuple(sorted(named))),
        instructions="\n".join(one.instructions.strip() for one in everything if one.instructions.strip()),
        categories=tuple(categories.values()),
        never=tuple(dict.fromkeys(phrase for one in everything for phrase in one.never)),
        retention=tuple(rules.values()),
    )


def _place(rule: Retention) -> tuple[MemoryType | None, str | None]:
    """Return what the rule is for; the case of a category does not matter."""
    return rule.memory_type, rule.category and rule.category.casefold()


def end_of(policy: EffectivePolicy, *, kind: MemoryType, tags: Sequence[str], made_at: datetime) -> datetime | None:
    """Return when a memory made then ends: the earliest end of all rules that apply to it; None without one.

    A kept turn may say anything, so the rules for facts of either type apply to it.
    """
    category = (category_of(policy, tags) or "").casefold()
    kinds = (None, kind, *(("LongTermMemory", "UserMemory") if kind == "KeptTurn" else ()))
    days = [
        rule.days
        for rule in policy.retention
        if rule.memory_type in kinds and (rule.category is None or rule.category.casefold() == category)
    ]
    return made_at + timedelta(days=min(days)) if days else None


def category_of(policy: EffectivePolicy, tags: Sequence[str]) -> str | None:
    """Return the policy's name of the first tag that names one of its categories; case does not matter."""
    names = {category.name.casefold(): category.name for category in policy.categories}
    return next((names[tag.casefold()] for tag in tags if tag.casefold() in names), None)
