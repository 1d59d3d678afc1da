"""TLS contexts from files that are renewed under a running process, as cert-manager renews a mounted Secret.

Each connection begins with the files as they are then. A connection that is open goes on with those that it began with.
"""

import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeAlias

_LOG: Final = logging.getLogger(__name__)
_Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate chain and its private key, as PEM files; without a key, the first file has both."""

    chain: Path
    key: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.chain,) if self.key is None else (self.chain, self.key)


class RenewedContext(ssl.SSLContext):
    """A context that is made again when one of its files has changed.

    While the files do not fit together (one is written before the other), or are gone, the context of before stays.
    Raises OSError and SSLError for wrong files at the start.
    """

    def __new__(cls, make: Callable[[], ssl.SSLContext], files: Sequence[Path]) -> Self:
        """Return a context, whose own options are never used."""
        del make, files
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, make: Callable[[], ssl.SSLContext], files: Sequence[Path]) -> None:
        self._make = make
        self._files = files
        self._stamp = _stamp(files)
        self._present = make()

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Begin a connection by the present files."""
        return self._now().wrap_bio(incoming, outgoing, server_side, server_hostname, session)

    def set_alpn_protocols(self, alpn_protocols: object) -> None:
        """Offer no protocols: all of our connections speak HTTP/1.1 or the protocol of the state."""

    def _now(self) -> ssl.SSLContext:
        stamp = _stamp(self._files)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._present = self._make()
            except (OSError, ssl.SSLError) as error:
                _LOG.error("renewed TLS files cannot be used, the ones of before stay: %s", error)
            else:
                _LOG.info("TLS files were renewed: %s", ", ".join(map(str, self._files)))
        return self._present


def server_context(own: Certificate, *, client_authorities: Path | None = None) -> RenewedContext:
    """Return the context of a server. With ``client_authorities`` a client must show a certificate of one of them."""

    def make() -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(own.chain, own.key)
        if client_authorities is not None:
            context.load_verify_locations(client_authorities)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    return RenewedContext(make, [*own.files, *filter(None, [client_authorities])])


def client_context(
    *, authorities: Path | None = None, own: Certificate | None = None, any_name: bool = False
) -> RenewedContext:
    """Return the context of a client that trusts the authorities beside the system's.

    A server that asks for a client's certificate gets ``own``. ``any_name`` is for a server that is reached by another
    name than its certificate's: over loopback.
    """

    def make() -> ssl.SSLContext:
        context = ssl.create_default_context()
        if authorities is not None:
            context.load_verify_locations(authorities)
        if own is not None:
            context.load_cert_chain(own.chain, own.key)
        context.check_hostname = not any_name
        return context

    return RenewedContext(make, [*(own.files if own is not None else ()), *filter(None, [authorities])])


def _stamp(files: Sequence[Path]) -> _Stamp:
    stamp: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            found = file.stat()
        except OSError:
            stamp.append(None)
        else:
            stamp.append((found.st_ino, found.st_mtime_ns, found.st_size))
    return tuple(stamp)
