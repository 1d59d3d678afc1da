"""A Kubernetes API server on the loopback, as far as Helm installs and upgrades: objects in memory.

Of the rules of a real one it has those that stop upgrades: some fields of a stored object cannot be changed.
"""

import contextlib
import json
import threading
from collections.abc import Generator, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias

import yaml

from tests.deploy.chart.chart_release import Object

_VERBS: Final = ["create", "delete", "get", "list", "patch"]
_FIXED: Final = {"Job": ("template",), "StatefulSet": ("selector", "serviceName", "volumeClaimTemplates")}
"""Fields of the spec that cannot be changed, by kind."""
_KIND: Final[Object] = {"kind": "APIResourceList", "apiVersion": "v1"}
Stored: TypeAlias = dict[str, Object]
"""Objects by their path."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    documents: dict[str, Object]
    stored: Stored

    def do_GET(self) -> None:
        path = self._path()
        if path == "/openapi/v2":
            return self._send(200, b"", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
        found = self.documents.get(path) or self.stored.get(path)
        return self._found(found) if found else self._refused(404, "NotFound", f"there is no {path}")

    def do_POST(self) -> None:
        sent = self._read()
        self.stored[f"{self._path()}/{sent['metadata']['name']}"] = sent
        self._found(sent)

    def do_PATCH(self) -> None:
        path, sent = self._path(), self._read()
        before = self.stored.get(path, sent)
        for name in _FIXED.get(sent["kind"], ()):
            if before["spec"][name] != sent["spec"][name]:
                return self._refused(422, "Invalid", f"spec.{name}: Invalid value: field is immutable")
        self.stored[path] = sent
        return self._found(sent)

    def do_DELETE(self) -> None:
        self._read()
        self._found(self.stored.pop(self._path(), {"kind": "Status", "apiVersion": "v1", "status": "Success"}))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        """No access log."""

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _read(self) -> Any:
        return yaml.load(self.rfile.read(int(self.headers.get("content-length") or 0)), yaml.CSafeLoader)

    def _found(self, body: Object) -> None:
        self._send(200, json.dumps(body).encode())

    def _refused(self, status: int, reason: str, message: str) -> None:
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
        self._send(status, json.dumps({**body, "reason": reason, "message": message}).encode())

    def _send(self, status: int, data: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextlib.contextmanager
def api_server(kinds: Iterable[tuple[str, str]]) -> Generator[tuple[str, Stored]]:
    """Run one that has these kinds, each with its ``apiVersion``; yield its kubeconfig and the objects it stores."""
    stored: Stored = {}
    handler = type("Handler", (_Handler,), {"documents": _discovery(kinds), "stored": stored})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        yield _kubeconfig(server.server_port), stored
        server.shutdown()


def _discovery(kinds: Iterable[tuple[str, str]]) -> dict[str, Object]:
    resources: dict[str, list[Object]] = {}
    for version, kind in sorted(set(kinds)):
        resources.setdefault(version, []).append(_resource(kind))
    paths = {version: f"/apis/{version}" if "/" in version else f"/api/{version}" for version in resources}
    groups = [_group(version) for version in resources if "/" in version]
    lists = {path: _KIND | {"groupVersion": v, "resources": resources[v]} for v, path in paths.items()}
    return lists | {
        "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
        "/openapi/v3": {"paths": {}},
    }


def _resource(kind: str) -> Object:
    name = kind.lower()
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return {"name": plural, "singularName": name, "namespaced": True, "kind": kind, "verbs": _VERBS}


def _group(version: str) -> Object:
    group, _, number = version.partition("/")
    at = {"groupVersion": version, "version": number}
    return {"name": group, "versions": [at], "preferredVersion": at}


def _kubeconfig(port: int) -> str:
    named = {
        "clusters": [{"name": "loopback", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "operator", "user": {"token": "any"}}],
        "contexts": [{"name": "loopback", "context": {"cluster": "loopback", "user": "operator"}}],
    }
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "loopback", **named})
