"""The address of a page, for the links to its neighbours."""

from fastapi import Request
from starlette.datastructures import URL


def url_of(request: Request) -> URL:
    """Return the address by which the client came, with the trailing slash of mem0's paths.

    Only the path is known behind a proxy that ends TLS and whose headers the process does not trust: a link without TLS
    would take the client's key past it in the clear.
    """
    root: str = request.scope.get("root_path", "")
    url = request.url.replace(path=f"{root}{request.url.path.rstrip('/')}/")
    scheme = request.headers.get("x-forwarded-proto", url.scheme)
    return url if scheme == url.scheme else url.replace(scheme="", netloc="")
