"""The caller of a request and its permissions."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from memloop.wire.errors import Forbidden
from memloop.wire.keys import Scope


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller. ``tenant`` limits the data that the request may access; ``key`` is the key's public id."""

    tenant: str
    scopes: frozenset[Scope]
    key: str = field(default="", compare=False)
    is_operator: bool = False
    """Whether it may manage the keys of every tenant, not only its own."""
    expires_at: float = field(default=math.inf, compare=False)
    """When the secret that it presented ends, in seconds since the epoch."""

    @property
    def bucket(self) -> str:
        """The name under which the caller's requests and tokens are counted."""
        return f"{self.tenant}:{self.key}"

    def allows(self, scope: Scope) -> bool:
        """Whether the key has the scope."""
        return scope in self.scopes

    def require_operator(self, message: str) -> None:
        """Raise Forbidden (403 ``permission_denied``) unless an operator calls; without configured keys all may."""
        if self.key and not self.is_operator:
            raise Forbidden(message, code="permission_denied")

    def require(self, *scopes: Scope, param: str | None = None) -> None:
        """Raise Forbidden (403 ``permission_denied``) unless the key has all scopes."""
        missing = [scope for scope in scopes if scope not in self.scopes]
        if missing:
            raise Forbidden(
                f"This key has insufficient permissions for this operation. Missing scopes: {', '.join(missing)}.",
                param=param,
                code="permission_denied",
            )

    def require_no_wider(self, scopes: Collection[Scope], *, expires_at: float | None) -> None:
        """Raise Forbidden when a key would have a right or a lifetime that its maker lacks; an operator may give all.

        ``expires_at`` is the key's end, None for a key without one.
        """
        if self.is_operator:
            return
        self.require(*sorted(scopes), param="scopes")
        if (math.inf if expires_at is None else expires_at) > self.expires_at:
            raise Forbidden(
                f"A key cannot outlive the one that makes it: expires_at may be at most {int(self.expires_at)}.",
                param="expires_at",
                code="permission_denied",
            )


def managed(principal: Principal, tenant: str | None) -> str:
    """Return the tenant to manage, by default the caller's. Raises Forbidden when the caller may not manage it."""
    if tenant is None or tenant == principal.tenant:
        return principal.tenant
    if not principal.is_operator:
        raise Forbidden("This key may manage only its own tenant.", param="tenant", code="permission_denied")
    return tenant
