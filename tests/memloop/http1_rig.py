"""The HTTP client beside a peer that a test scripts, on asyncio's loop or uvloop's."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from memloop.wire.errors import MemloopError
from memloop_clients import Balancing, Timeouts
from memloop_clients.http import Http
from tests.fakes.odd_peer import OddPeer, Script, odd_peer

Scenario: TypeAlias = Callable[[], Coroutine[None, None, None]]
Run: TypeAlias = Callable[[Scenario], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Once: a\r\n\r\n"
PATIENT = Timeouts(connect_s=60.0, read_s=60.0, total_s=120.0)


def client(url: str, *, timeouts: Timeouts = PATIENT, balancing: Balancing | None = None) -> Http:
    headers = {"X-Key": "k"}
    return Http(url, peer="peer", error_of=refused, headers=headers, timeouts=timeouts, balancing=balancing)


def refused(status: int, raw: bytes, _: object) -> MemloopError:
    return MemloopError(f"{status} {raw.decode()}")


@asynccontextmanager
async def peer_and_client(script: Script, *, timeouts: Timeouts = PATIENT) -> AsyncGenerator[tuple[OddPeer, Http]]:
    async with odd_peer(script) as peer, client(peer.url, timeouts=timeouts) as http:
        yield peer, http


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context with a certificate of its own for 127.0.0.1 and engine.test, and the certificate's file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "peer")])
    places = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("engine.test")]
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(places), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "peer.pem"
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, file
