"""Asks an image registry which digest a tag has now, by the OCI distribution API.

Source: https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md#pulling-manifests, and for tokens
https://distribution.github.io/distribution/spec/auth/token/.
"""

import hashlib
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

_DOCKER_HUB: Final = "registry-1.docker.io"
_HUB_NAMES: Final = ("docker.io", "index.docker.io")
_HUB_CREDENTIALS: Final = "https://index.docker.io/v1/"
_LOOPBACK: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
_KINDS: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
"""An index before a single manifest: its digest holds for every architecture."""
_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')
_MOST_BYTES: Final = 4 << 20
"""The least that a registry must accept as a manifest, and the most that they do."""
_TIMEOUT_S: Final = 30.0


class RegistryError(RuntimeError):
    """The registry did not answer, refused, or answered something else."""


@dataclass(frozen=True)
class Image:
    """An image by registry, repository and tag."""

    registry: str
    repository: str
    tag: str

    @classmethod
    def parse(cls, name: str) -> "Image":
        """Parse a name as Docker does: without a registry it is Docker Hub's, without a tag ``latest``."""
        path, _, tag = name.rpartition(":") if ":" in name.rpartition("/")[2] else (name, "", "latest")
        first, slash, rest = path.partition("/")
        if slash and ("." in first or ":" in first or first == "localhost"):
            registry, repository = first, rest
        else:
            registry, repository = "docker.io", path
        if registry in _HUB_NAMES and "/" not in repository:
            repository = f"library/{repository}"
        return cls(registry, repository, tag)

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}:{self.tag}"


@dataclass(frozen=True)
class Registries:
    """Registries, asked over HTTPS, and over HTTP on this machine. ``logins`` hold Basic credentials by registry."""

    logins: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of_docker(cls, config: Path) -> "Registries":
        """Log in as ``docker login`` has stored it in the file; credential helpers are not asked."""
        stored: dict[str, Any] = json.loads(config.read_text()).get("auths", {}) if config.is_file() else {}
        return cls({name: entry["auth"] for name, entry in stored.items() if entry.get("auth")})

    def digest(self, image: Image) -> str:
        """Return ``sha256:…`` of what the tag names now, computed from the manifest itself. Raises RegistryError."""
        host = _DOCKER_HUB if image.registry in _HUB_NAMES else image.registry
        scheme = "http" if _LOOPBACK.fullmatch(host) else "https"
        url = f"{scheme}://{host}/v2/{image.repository}/manifests/{image.tag}"
        try:
            manifest, named = self._manifest(url, image)
        except (urllib.error.URLError, TimeoutError, ValueError) as error:
            raise RegistryError(f"{image}: {error}") from error
        digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
        if named and named != digest:
            raise RegistryError(f"{image}: the registry names {named}, but the manifest is {digest}")
        return digest

    def _manifest(self, url: str, image: Image) -> tuple[bytes, str]:
        headers = {"Accept": ", ".join(_KINDS)}
        try:
            return _read(url, headers)
        except urllib.error.HTTPError as refusal:
            challenge = refusal.headers.get("WWW-Authenticate", "")
            if refusal.code != 401 or not challenge:
                raise
        return _read(url, headers | {"Authorization": self._authorization(challenge, image)})

    def _authorization(self, challenge: str, image: Image) -> str:
        """Answer a challenge: with the login itself, or with a token for pulling that it buys."""
        name = _HUB_CREDENTIALS if image.registry in _HUB_NAMES else image.registry
        login = self.logins.get(name)
        kind, parameters = challenge.partition(" ")[0].lower(), dict(_PARAMETER.findall(challenge))
        if kind == "basic" and login:
            return f"Basic {login}"
        if kind != "bearer" or not _is_safe(parameters.get("realm", "")):
            raise RegistryError(f"{image}: log in first (docker login {image.registry})")
        asked = {"service": parameters.get("service", ""), "scope": f"repository:{image.repository}:pull"}
        body, _ = _read(
            f"{parameters['realm']}?{urlencode(asked)}", {"Authorization": f"Basic {login}"} if login else {}
        )
        answer: dict[str, str] = json.loads(body)
        return f"Bearer {answer.get('token') or answer['access_token']}"


def _is_safe(url: str) -> bool:
    """Return whether a password may be sent there: over TLS, or to this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and _LOOPBACK.fullmatch(parts.netloc) is not None)


def _read(url: str, headers: Mapping[str, str]) -> tuple[bytes, str]:
    """Return the body and the digest that the registry names, if any."""
    request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 - http or https, checked by the callers
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
        body = answer.read(_MOST_BYTES + 1)
        if len(body) > _MOST_BYTES:
            raise ValueError("the manifest has more than 4 MiB")
        return body, answer.headers.get("Docker-Content-Digest", "")
