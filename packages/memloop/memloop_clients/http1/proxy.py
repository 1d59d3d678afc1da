"""Finds the outgoing proxy of the environment: ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``, in either case."""

import base64
import ipaddress
import urllib.request
from dataclasses import dataclass, field
from typing import cast

from yarl import URL


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy reached in plain HTTP. ``authorization`` is the header's value for its user."""

    host: str
    port: int
    authorization: str | None = field(repr=False)

    @classmethod
    def at(cls, address: str) -> "Proxy":
        """Parse a URL or ``host:port``. Raises ValueError for any other kind of proxy."""
        url = URL(address if "://" in address else f"http://{address}")
        if url.scheme != "http" or url.host is None or url.port is None:
            raise ValueError("HTTPS_PROXY and HTTP_PROXY take an http:// URL: the proxy is spoken to in plain HTTP.")
        pair = f"{url.user}:{url.password or ''}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}" if url.user is not None else None
        return cls(url.host, url.port, authorization)

    @property
    def headers(self) -> dict[str, str]:
        """Return the proxy's own headers."""
        return {} if self.authorization is None else {"Proxy-Authorization": self.authorization}


def proxy_for(url: URL) -> Proxy | None:
    """Return the proxy to the URL by the standard library's rules; None for a direct connection. Loopback is always
    direct.

    Raises ValueError for a proxy of another kind.
    """
    proxies = urllib.request.getproxies_environment()
    address = proxies.get(url.scheme)
    if not address or url.host is None or _is_loopback(url.host) or _is_exempt(url, proxies):
        return None
    return Proxy.at(address)


def _is_exempt(url: URL, proxies: dict[str, str]) -> bool:
    place = f"{url.host_subcomponent}:{url.port}"
    exempt = urllib.request.proxy_bypass_environment(place, proxies)  # pyright: ignore - typeshed lacks it
    return bool(cast(object, exempt))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
