"""Opens the sockets that a process listens on."""

import socket
from pathlib import Path
from typing import Final

from memloop_service.settings import ServiceSettings

_UNSENT_BYTES: Final = 128 * 1024
"""The most of a response that the kernel holds for a client that does not take it; by default it holds 4 MB."""
_ANY_USER: Final = 0o666
"""As with a port, any user of the machine may connect, if the permissions of the folder let it."""


def main_listener(settings: ServiceSettings) -> socket.socket:
    """Return the socket of the process's clients: its Unix socket, if it has one, else that of its port.

    A Unix socket that an earlier process left behind is replaced. Exits when it cannot bind.
    """
    path = settings.unix_socket
    if path is None:
        return listener(settings, settings.port)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and not _is_served(path):
            path.unlink()
        bound.bind(str(path))
        path.chmod(_ANY_USER)
    except OSError as error:
        bound.close()
        raise SystemExit(f"cannot listen on {path}: {error.strerror or error}") from error
    return bound


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True


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
