"""A certificate authority for tests: it signs certificates for names and addresses, and writes them as PEM files."""

import datetime as dt
import ipaddress
import itertools
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_SERIAL = itertools.count(1)
_PLAIN = serialization.NoEncryption()


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and of its key."""

    chain: Path
    key: Path


@dataclass
class Authority:
    """An authority, whose own certificate is in ``file``."""

    folder: Path
    name: str = "authority"
    _key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        self._name = _named(self.name)
        basic = x509.BasicConstraints(ca=True, path_length=0)
        own = _signed(self._name, self._key, by=(self._name, self._key), extensions=[(basic, True)])
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    @property
    def file(self) -> Path:
        """Its certificate."""
        return self.folder / f"{self.name}.pem"

    def issue(self, name: str) -> Pair:
        """Write a new certificate for the loopback address and this name, as cert-manager renews it."""
        key = ec.generate_private_key(ec.SECP256R1())
        loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        places = x509.SubjectAlternativeName([loopback, x509.DNSName(name)])
        signed = _signed(_named(name), key, by=(self._name, self._key), extensions=[(places, False)])
        pair = Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        pair.chain.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, _PLAIN)
        pair.key.write_bytes(private)
        return pair

    def of_server(self, pair: Pair, *, clients: "Authority | None" = None) -> ssl.SSLContext:
        """A server's context; with ``clients`` they must show a certificate of that authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.chain, pair.key)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients.file)
        return context

    def of_client(self) -> ssl.SSLContext:
        """A client's context that trusts this authority alone."""
        return ssl.create_default_context(cafile=self.file)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    by: tuple[x509.Name, ec.EllipticCurvePrivateKey],
    extensions: Sequence[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(
        issuer_name=by[0],
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=next(_SERIAL),
        not_valid_before=now - dt.timedelta(days=1),
        not_valid_after=now + dt.timedelta(days=1),
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(by[1], hashes.SHA256())
