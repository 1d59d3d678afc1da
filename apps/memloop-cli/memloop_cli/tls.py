"""TLS of the command line, by the variables that the services read."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memloop_cli.errors import BadInput
from memloop_clients.tls import Certificate, client_context

_CA: Final = "MEMLOOP_CONNECT_CA"
_CERT: Final = "MEMLOOP_CONNECT_CERT"
_KEY: Final = "MEMLOOP_CONNECT_KEY"


def connects_by(environment: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the context of connections to gateway and engine; None: by the system's. Raises BadInput."""
    authorities, chain, key = (Path(value) if (value := environment.get(name)) else None for name in (_CA, _CERT, _KEY))
    if authorities is None and chain is None:
        return None
    try:
        return client_context(authorities=authorities, own=Certificate(chain, key) if chain is not None else None)
    except (OSError, ssl.SSLError) as error:
        raise BadInput(f"{_CA}, {_CERT} or {_KEY}: {error}") from error
