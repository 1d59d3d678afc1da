"""Bundles the operator's rules for downloads into one value."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from gateway.addresses import AddressRules, Lookup, system_lookup
from gateway.settings import GatewaySettings, networks_of
from memloop.wire.errors import NotSupported


@dataclass(frozen=True, slots=True)
class Fetching:
    """``addresses`` are the addresses that a download may connect to; ``timeout_s`` bounds a whole download."""

    enabled: bool
    addresses: AddressRules
    timeout_s: float
    lookup: Lookup = system_lookup

    def check_enabled(self) -> None:
        """Raise NotSupported unless the operator allows downloads."""
        if not self.enabled:
            raise NotSupported("URLs are not downloaded here (MEMLOOP_FETCH_URLS).")


def open_fetching(settings: GatewaySettings) -> Fetching:
    """Build the slice from the settings."""
    addresses = AddressRules(networks_of(settings.fetch_allow_networks))
    return Fetching(settings.fetch_urls, addresses, settings.fetch_timeout_s)


async def fetching_of(request: Request) -> Fetching:
    """Return the slice from the application's state."""
    return cast(Fetching, request.app.state.fetching)


FetchingDep: TypeAlias = Annotated[Fetching, Depends(fetching_of)]
