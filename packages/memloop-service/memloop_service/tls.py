"""TLS of a process: the certificate that its port shows, and what it trusts and shows where it connects."""

import ssl
from pathlib import Path

from memloop_clients.tls import Certificate, client_context, server_context
from memloop_service.settings import ServiceSettings


def served_by(settings: ServiceSettings) -> ssl.SSLContext | None:
    """Return the context of the process's port; None without a certificate. Exits when a file cannot be used."""
    own = _certificate(settings.tls_cert, settings.tls_key)
    if own is None:
        return None
    try:
        return server_context(own, client_authorities=settings.tls_client_ca)
    except (OSError, ssl.SSLError) as error:
        raise SystemExit(f"MEMLOOP_TLS_CERT, MEMLOOP_TLS_KEY or MEMLOOP_TLS_CLIENT_CA: {error}") from error


def connects_by(settings: ServiceSettings, *, any_name: bool = False) -> ssl.SSLContext | None:
    """Return the context of connections to other parts; None: by the system's. Exits when a file cannot be used.

    ``any_name``: whatever name is in the certificate, which is for a server of this very machine.
    """
    own = _certificate(settings.connect_cert, settings.connect_key)
    if own is None and settings.connect_ca is None:
        return None
    try:
        return client_context(authorities=settings.connect_ca, own=own, any_name=any_name)
    except (OSError, ssl.SSLError) as error:
        raise SystemExit(f"MEMLOOP_CONNECT_CA, MEMLOOP_CONNECT_CERT or MEMLOOP_CONNECT_KEY: {error}") from error


def _certificate(chain: Path | None, key: Path | None) -> Certificate | None:
    return Certificate(chain, key) if chain is not None else None
