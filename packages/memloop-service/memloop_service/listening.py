"""Opens the socket that a process listens on."""

import socket
from typing import Final

from memloop_service.settings import ServiceSettings

_UNSENT_BYTES: Final = 128 * 1024
"""The most of a response that the kernel holds for a client that does not take it; by default it holds 4 MB."""


def listener(settings: ServiceSettings, port: int) -> socket.socket:
    """Return the bound socket. Clients must read sent data within ``write_timeout_s``.

    The kernel enforces that (on Linux) for every response, without a timer of ours: it closes a connection whose peer
    has read nothing for that long, and the request ends as if the client had disconnected.

    Exits when it cannot bind.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio leaves Nagle on
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(settings.write_timeout_s * 1000))
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    try:
        bound.bind((settings.host, port))
    except OSError as error:
        bound.close()
        raise SystemExit(f"cannot listen on {settings.host}:{port}: {error.strerror}") from error
    return bound
