"""Which addresses of the outside may be called: rules, and names resolved under them."""

from gateway.addresses.resolving import (
    AddressRefused,
    AddressRules,
    CheckedResolver,
    Lookup,
    check_host,
    checked_session,
    system_lookup,
)

__all__ = [
    "AddressRefused",
    "AddressRules",
    "CheckedResolver",
    "Lookup",
    "check_host",
    "checked_session",
    "system_lookup",
]
