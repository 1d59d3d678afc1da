"""Lets a ``docker build`` reach the packages that this machine's pip reaches.

pip's own configuration may name local folders and indexes: they are served over HTTP on the loopback while a build
runs (with the host's network), and the configuration is handed to the build as a secret, with their addresses.
"""

import contextlib
import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_PLACES: Final = ("index-url", "extra-index-url", "find-links")
_CA_INSIDE: Final = "/run/secrets/ca"


class Folders:
    """Folders under numbers: ``/0/…`` is the first one."""

    def __init__(self) -> None:
        self.paths: list[Path] = []

    def number(self, path: Path) -> int:
        """The number of a folder; a new one when it has none."""
        if path not in self.paths:
            self.paths.append(path)
        return self.paths.index(path)


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments: object, folders: Folders) -> None:
        self._folders = folders
        super().__init__(*arguments)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        number, _, rest = unquote(urlsplit(path).path).lstrip("/").partition("/")
        if not number.isdecimal() or int(number) >= len(self._folders.paths) or ".." in rest.split("/"):
            return "/nonexistent"
        return str(self._folders.paths[int(number)] / rest)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        """Say nothing."""


@contextlib.contextmanager
def build_secrets(folder: Path) -> Generator[list[str]]:
    """``docker build`` arguments that carry pip's configuration; its local folders are served meanwhile.

    ``folder`` takes the configuration file.
    """
    folders = Folders()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, folders=folders))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        base = f"http://127.0.0.1:{server.server_port}"
        options = _pip_options()
        lines = [f"{name} = {_served(options[name], base, folders)}" for name in _PLACES if name in options]
        authority = options.get("cert") or os.environ.get("SSL_CERT_FILE")
        secrets = ["--network", "host"]
        if authority:
            lines.append(f"cert = {_CA_INSIDE}")
            secrets += ["--secret", f"id=ca,src={authority}"]
        npm = Path.home() / ".npmrc"
        if npm.is_file():
            secrets += ["--secret", f"id=npmrc,src={npm}"]
        (folder / "pip.conf").write_text("\n".join(["[global]", "timeout = 180", *lines, ""]))
        yield [*secrets, "--secret", f"id=pip,src={folder / 'pip.conf'}"]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _pip_options() -> dict[str, str]:
    """pip's options by name; what the environment sets wins, as it does for pip."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    found: dict[str, str] = {}
    for line in sorted(listing.stdout.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        found[name.rsplit(".", 1)[-1]] = value.strip("'\"")
    return found


def _served(value: str, base: str, folders: Folders) -> str:
    return " ".join(_address(place, base, folders) for place in value.split())


def _address(place: str, base: str, folders: Folders) -> str:
    """A local folder or index as an address; its neighbours are served too, for an index links to them."""
    if place.startswith(("http://", "https://")):
        return place
    path = Path(place.removeprefix("file://"))
    return f"{base}/{folders.number(path.parent)}/{path.name}/"
