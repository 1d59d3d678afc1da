"""The URLs by which a client calls an engine, a store or a launcher, checked first, and the proxy of the environment.

That is ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``, in either case.
"""

import ipaddress
import urllib.request
from collections.abc import Sequence
from typing import Final, cast

from yarl import URL

_PLAIN: Final = ("http", "https")
_BALANCED: Final = (*_PLAIN, "http+srv", "https+srv")


def plain_url(text: str) -> str:
    """Return the URL of one server. Raises ValueError."""
    return _with_scheme(text, _PLAIN)


def balanced_url(text: str) -> str:
    """Return the URL of a service whose replicas share the requests, by addresses or SRV records. Raises ValueError."""
    return _with_scheme(text, _BALANCED)


def urls_in(text: str) -> tuple[str, ...]:
    """Return the URLs of a comma-separated list."""
    return tuple(url for url in map(str.strip, text.split(",")) if url)


def balanced_urls(text: str) -> str:
    """Return a comma-separated list of services' URLs as it is. Raises ValueError for the first wrong one."""
    for url in urls_in(text):
        balanced_url(url)
    return text


def _with_scheme(text: str, schemes: Sequence[str]) -> str:
    url = URL(text)
    if url.scheme in schemes and url.host:
        return text
    *first, last = (f"{scheme}://" for scheme in schemes)
    raise ValueError(f"this is not an absolute {', '.join(first)} or {last} URL")


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
