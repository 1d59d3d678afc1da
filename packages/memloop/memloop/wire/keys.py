"""API keys and the audit log: what ``/v1/admin`` takes and gives. No answer but a key's first one holds its secret."""

from typing import Final, Literal, TypeAlias, get_args

Scope: TypeAlias = Literal["chat", "memory:read", "memory:write", "long-read", "admin"]
"""What a key may do. ``admin`` is keys and audit log alone: it brings none of the others with it."""
ALL_SCOPES: Final[frozenset[Scope]] = frozenset(get_args(Scope))
DEFAULT_SCOPES: Final[frozenset[Scope]] = ALL_SCOPES - {"admin"}
"""Of a key for which nobody named any."""
TENANT_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
