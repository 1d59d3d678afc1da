"""The URLs by which a client calls an engine, a store or a launcher, checked before anything is sent."""

from collections.abc import Sequence
from typing import Final

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
