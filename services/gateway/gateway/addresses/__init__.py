"""Which addresses of the outside may be called: rules, and names resolved under them.

``resolving`` is imported by itself: it brings aiohttp, which a process that calls nobody outside need not load.
"""

from gateway.addresses.addresses import AddressRefused, AddressRules
from gateway.addresses.lookup import Lookup, system_lookup

__all__ = [
    "AddressRefused",
    "AddressRules",
    "Lookup",
    "system_lookup",
]
