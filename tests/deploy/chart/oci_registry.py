"""A registry of OCI artifacts on the loopback, as far as Helm pushes and pulls: the public distribution API."""

import contextlib
import hashlib
import re
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PATH = re.compile(r"^/v2/(?P<name>.+)/(?P<what>blobs|manifests)/(?P<reference>[^/?]*)")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    blobs: dict[str, tuple[str, bytes]]

    def do_GET(self) -> None:
        found = _PATH.match(self.path)
        kept = self.blobs.get(found["reference"]) if found else None
        if self.path.rstrip("/") == "/v2":
            self._send(200, b"{}")
        elif kept is None:
            self._send(404, b'{"errors": [{"code": "NAME_UNKNOWN"}]}')
        else:
            self._send(200, kept[1], kept[0])

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self._read()
        self._send(202, b"", location=self.path.rstrip("/") + "/upload")

    def do_PUT(self) -> None:
        data = self._read()
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        kind = self.headers.get("content-type", "application/octet-stream")
        self.blobs[digest] = (kind, data)
        found = _PATH.match(self.path)
        if found and found["what"] == "manifests":
            self.blobs[found["reference"]] = (kind, data)
        self._send(201, b"", location=self.path.partition("/uploads")[0], digest=digest)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        """No access log."""

    def _read(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _send(
        self, status: int, data: bytes, kind: str = "application/json", *, location: str = "", digest: str = ""
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.send_header("docker-content-digest", digest or f"sha256:{hashlib.sha256(data).hexdigest()}")
        if location:
            self.send_header("location", location)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextlib.contextmanager
def oci_registry() -> Generator[str]:
    """The registry's host and port."""
    handler = type("Handler", (_Handler,), {"blobs": dict[str, tuple[str, bytes]]()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
