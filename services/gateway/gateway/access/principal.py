"""The caller of a request, and what it may do."""

from dataclasses import dataclass, field

from memloop.wire.errors import Forbidden, NotFound
from memloop.wire.keys import Scope


class OtherTenants(NotFound):
    """The thing is another tenant's. The client sees what it sees when there is none; the audit log knows."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller. ``tenant`` bounds everything that the request may see; ``key`` names the key, and is no secret."""

    tenant: str
    scopes: frozenset[Scope]
    key: str = field(default="", compare=False)
    is_operator: bool = False
    """Whether it may manage the keys of every tenant; else those of its own."""

    @property
    def bucket(self) -> str:
        """What its requests and tokens are counted under."""
        return f"{self.tenant}:{self.key}"

    def allows(self, scope: Scope) -> bool:
        """Whether the key has the scope."""
        return scope in self.scopes

    def require(self, *scopes: Scope, param: str | None = None) -> None:
        """Raise Forbidden (403 ``permission_denied``) unless the key has them all."""
        missing = [scope for scope in scopes if scope not in self.scopes]
        if missing:
            raise Forbidden(
                f"This key has insufficient permissions for this operation. Missing scopes: {', '.join(missing)}.",
                param=param,
                code="permission_denied",
            )


def managed(principal: Principal, tenant: str | None) -> str:
    """The tenant that is meant. Raises Forbidden when the caller may not manage it."""
    if tenant is None or tenant == principal.tenant:
        return principal.tenant
    if not principal.is_operator:
        raise Forbidden("This key manages its own tenant only.", param="tenant", code="permission_denied")
    return tenant
