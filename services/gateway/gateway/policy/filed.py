"""Reads the operator's policies from ``MEMLOOP_MEMORY_POLICY_FILE``, a TOML file."""

import tomllib
from pathlib import Path

from pydantic import Field, ValidationError

from memloop.wire.base import Wire
from memloop.wire.policy import MemoryPolicy


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
