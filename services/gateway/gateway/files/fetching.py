"""Whether clients may have documents downloaded. A process that downloads nothing does not load aiohttp."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

from gateway.addresses import AddressRules
from gateway.settings import GatewaySettings, networks_of
from memloop.wire.errors import NotSupported
from memloop_service import of_app

if TYPE_CHECKING:
    from gateway.files.download import Downloads


@dataclass(frozen=True, slots=True)
class Fetching:
    """The downloads; None when the operator does not allow them."""

    allowed: "Downloads | None"

    def downloads(self) -> "Downloads":
        """Return the downloads. Raises NotSupported unless the operator allows them."""
        if self.allowed is None:
            raise NotSupported("URLs are not downloaded here (MEMLOOP_FETCH_URLS).")
        return self.allowed


def open_fetching(settings: GatewaySettings) -> Fetching:
    """Build the slice from the settings."""
    if not settings.fetch_urls:
        return Fetching(None)
    from gateway.files.download import Downloads

    addresses = AddressRules(networks_of(settings.fetch_allow_networks))
    return Fetching(Downloads(addresses, settings.fetch_timeout_s))


FetchingDep: TypeAlias = Annotated[Fetching, of_app("fetching")]
