"""Finds the outgoing proxy of the environment: ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``, in either case."""

import ipaddress
import urllib.request
from typing import cast

from yarl import URL


def proxy_for(url: URL) -> URL | None:
    """Return the proxy to the URL by the standard library's rules; None for a direct connection. Loopback is always
    direct.

    Raises ValueError for a proxy that is not reached in plain HTTP.
    """
    proxies = urllib.request.getproxies_environment()
    address = proxies.get(url.scheme)
    if not address or url.host is None or _is_loopback(url.host):
        return None
    place = f"{url.host_subcomponent}:{url.port}"
    exempt = urllib.request.proxy_bypass_environment(place, proxies)  # pyright: ignore - typeshed lacks it
    if cast(object, exempt):
        return None
    proxy = URL(address if "://" in address else f"http://{address}")
    if proxy.scheme != "http" or proxy.host is None or proxy.port is None:
        raise ValueError("HTTPS_PROXY and HTTP_PROXY take an http:// URL: the proxy is spoken to in plain HTTP.")
    return proxy


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
