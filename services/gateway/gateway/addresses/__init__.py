"""Which addresses of the outside may be called: rules, and names resolved under them."""

from gateway.addresses.resolving import AddressRefused as AddressRefused
from gateway.addresses.resolving import AddressRules as AddressRules
from gateway.addresses.resolving import Lookup as Lookup
from gateway.addresses.resolving import check_host as check_host
from gateway.addresses.resolving import checked_session as checked_session
from gateway.addresses.resolving import system_lookup as system_lookup
