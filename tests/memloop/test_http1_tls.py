"""The HTTP client and TLS, with a certificate made for the test. It runs on both loops."""

import datetime as dt
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from memloop.clients import Timeouts
from memloop.wire.errors import ConnectRefused
from tests.fakes.odd_peer import answering, odd_peer
from tests.memloop.http1_rig import CHUNKED, Run, client


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context with a certificate of its own for 127.0.0.1, and the certificate's file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "peer")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "peer.pem"
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, file


def test_tls_is_spoken_and_an_unknown_certificate_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, file = certificate(tmp_path)

    async def scenario() -> None:
        limits = Timeouts()
        async with odd_peer(answering(CHUNKED, b"2\r\nok\r\n0\r\n\r\n"), tls=context) as peer:
            async with client(peer.url, timeouts=limits) as http:
                with pytest.raises(ConnectRefused):
                    await http.json("GET", "x")
            monkeypatch.setenv("SSL_CERT_FILE", str(file))
            async with client(peer.url, timeouts=limits) as http:
                assert [await http.json("POST", "x", body="y" * 300_000) for _ in range(2)] == [b"ok"] * 2
            assert len(peer.requests) == 2

    run(scenario)
