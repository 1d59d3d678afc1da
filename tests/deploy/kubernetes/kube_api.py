"""A stand-in of Kubernetes' API server, strict in what it takes, written from the public API reference.

It keeps objects, checks them by the published schemas and by the restricted level, serves discovery, watches, scale,
logs and the proxy of pods. What controllers and kubelets do is in ``kube_machines``.
"""

import json
import queue
import re
import ssl
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.deploy.kubernetes.kube_objects import Key, Object, Objects, Refusal, absent
from tests.deploy.kubernetes.kube_protobuf import is_protobuf, secret_of

TOKEN: Final = "a-token"
_PATH: Final = re.compile(
    r"^/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+/[^/]+))(?:/namespaces/(?P<space>[^/]+)(?=/[^/]))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?P<below>/.*)?)?$"
)


class KubeApi:
    """The server; ``logs`` and ``address`` of a pod come from its machine."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.logs: Callable[[str], str] = lambda pod: ""
        self.address: Callable[[str, str], str] = lambda namespace, pod: ""
        self._watchers: list[queue.SimpleQueue[tuple[str, Object]]] = []
        api = self

        class Handler(_Handler):
            owner = api

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def start(self, folder: Path) -> Path:
        """Serve by TLS, without which no client sends a token; the kubeconfig."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*_certificate(folder))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        place = {"server": f"https://127.0.0.1:{self._server.server_port}", "insecure-skip-tls-verify": True}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "k", "cluster": place}],
            "users": [{"name": "admin", "user": {"token": TOKEN}}],
            "contexts": [{"name": "k", "context": {"cluster": "k", "user": "admin"}}],
            "current-context": "k",
        }
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def stop(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()

    def watched(self, what: str, one: Object) -> None:
        """Hand a change to those who watch."""
        for watcher in list(self._watchers):
            watcher.put(({"created": "ADDED", "changed": "MODIFIED", "deleted": "DELETED"}[what], one))

    def watch(self) -> "queue.SimpleQueue[tuple[str, Object]]":
        """All changes from now on."""
        watcher: queue.SimpleQueue[tuple[str, Object]] = queue.SimpleQueue()
        self._watchers.append(watcher)
        return watcher


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: KubeApi

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_POST(self) -> None:
        self._answered(self._post)

    def do_PUT(self) -> None:
        self._answered(self._put)

    def do_PATCH(self) -> None:
        self._answered(self._patch)

    def do_DELETE(self) -> None:
        self._answered(lambda: self.owner.objects.delete(self._key()))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        """No access log."""

    def _answered(self, work: Callable[[], object]) -> None:
        parts = urlsplit(self.path)
        self.route, self.query = parts.path, {name: values[-1] for name, values in parse_qs(parts.query).items()}
        self.data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            if self.headers.get("authorization") != f"Bearer {TOKEN}":
                raise Refusal(401, "Unauthorized", "Unauthorized")
            answer = work()
        except Refusal as refusal:
            told = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": refusal.status}
            self._send(told | {"reason": refusal.reason, "message": refusal.message}, refusal.status)
        else:
            if answer is not None:
                self._send(answer, 201 if self.command == "POST" else 200)

    def _send(self, answer: object, status: int) -> None:
        data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "text/plain" if isinstance(answer, str) else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _get(self) -> object:
        found = self._discovery()
        if found is not None:
            return found
        objects = self.owner.objects
        if self._below() == "log":
            return self.owner.logs(self._key()[3])
        if self._below().startswith("proxy"):
            return self._proxied()
        key = self._key()
        if key[3]:
            return objects.get(key)
        if self.query.get("watch") in {"true", "1"}:
            return self._watch(key)
        items = [one for one in objects.listed(*key[:3], _selector(self.query)) if _has_name(one, self.query)]
        [kind] = [kind for kind, plural in objects.kinds[key[0]].items() if plural == key[1]]
        return {"kind": f"{kind}List", "apiVersion": key[0], "metadata": {"resourceVersion": "1"}, "items": items}

    def _discovery(self) -> Object | None:
        """What the server serves; None for any other path."""
        objects = self.owner.objects
        if self.route == "/version":
            return {"major": "1", "minor": "31", "gitVersion": "v1.31.0-standin"}
        if self.route == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if self.route == "/apis":
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(objects)}
        if self.route in {f"/api{'s' if '/' in one else ''}/{one}" for one in objects.kinds}:
            return objects.discovery(self.route.split("/", 2)[2])
        if self.route.startswith("/openapi/v3"):
            return _openapi(objects, self.route.removeprefix("/openapi/v3").strip("/"))
        return None

    def _watch(self, key: Key) -> None:
        """Stream the changes of a kind until the client goes or its time is up."""
        watcher = self.owner.watch()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        kind = next(one for one, plural in self.owner.objects.kinds[key[0]].items() if plural == key[1])
        whole = self.query.get("sendInitialEvents") == "true"
        try:
            if whole or not self.query.get("resourceVersion"):
                for one in self.owner.objects.listed(*key[:3], _selector(self.query)):
                    self._event("ADDED", one)
            if whole:
                ended = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
                self._event("BOOKMARK", {"kind": kind, "apiVersion": key[0], "metadata": ended})
            while True:
                what, one = watcher.get(timeout=float(self.query.get("timeoutSeconds", 300)))
                here = not key[2] or one["metadata"].get("namespace") == key[2]
                if (one["kind"], one["apiVersion"]) == (kind, key[0]) and here and _has_name(one, self.query):
                    self._event(what, one)
        except (OSError, queue.Empty):
            self.close_connection = True

    def _event(self, what: str, one: Object) -> None:
        data = json.dumps({"type": what, "object": one}).encode() + b"\n"
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _post(self) -> object:
        if self._below().startswith("proxy"):
            return self._proxied()
        one = self._object()
        self._same_kind(one)
        strict = self.query.get("fieldValidation") == "Strict"
        return self.owner.objects.create(self._key(), one, dry_run=self.query.get("dryRun") == "All", strict=strict)

    def _put(self) -> object:
        given = self._object()

        def change(one: Object) -> None:
            kept = one["metadata"]
            one.update(given)
            one["metadata"] = {**kept, **{name: value for name, value in given["metadata"].items() if value}}

        return self.owner.objects.replace(self._key(), change)

    def _patch(self) -> object:
        """Merge patches, and server-side apply as a merge that creates what is absent."""
        given, key = yaml.safe_load(self.data), self._key()
        kind = self.headers["content-type"].split(";")[0]
        if kind not in {
            "application/merge-patch+json",
            "application/apply-patch+yaml",
            "application/strategic-merge-patch+json",
        }:
            raise Refusal(415, "UnsupportedMediaType", kind)
        if kind == "application/apply-patch+yaml" and "fieldManager" not in self.query:
            raise Refusal(400, "BadRequest", "fieldManager is required for apply patch")
        if kind == "application/apply-patch+yaml" and key not in self.owner.objects.objects:
            return self.owner.objects.create(
                key, given, dry_run=False, strict=self.query.get("fieldValidation") == "Strict"
            )
        return self.owner.objects.replace(key, lambda one: _merge(one, given))

    def _object(self) -> Object:
        return secret_of(self.data) if is_protobuf(self.data) else yaml.safe_load(self.data)

    def _same_kind(self, one: Object) -> None:
        key = self._key()
        kinds = self.owner.objects.kinds[key[0]]
        if one.get("apiVersion") != key[0] or kinds.get(one.get("kind", "")) != key[1]:
            raise Refusal(400, "BadRequest", f"the object is no {key[0]} {key[1]}")

    def _key(self) -> Key:
        found = _PATH.match(self.route)
        if found is None:
            raise absent(self.route)
        version = found["core"] or found["group"]
        if found["plural"] not in self.owner.objects.kinds.get(version, {}).values():
            raise absent("the server could not find the requested resource")
        return version, found["plural"], found["space"] or "", found["name"] or ""

    def _below(self) -> str:
        found = _PATH.match(self.route)
        return (found["below"] or "").lstrip("/") if found else ""

    def _proxied(self) -> object:
        key = self._key()
        pod, _, port = key[3].partition(":")
        self.owner.objects.get(("v1", "pods", key[2], pod))
        url = f"http://{self.owner.address(key[2], pod)}:{port}/{self._below().partition('/')[2]}"
        request = urllib.request.Request(url, data=self.data if self.command == "POST" else None, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.read().decode()
        except OSError as error:
            raise Refusal(503, "ServiceUnavailable", f"error trying to reach service: {error}") from error


def _openapi(objects: Objects, version: str) -> Object:
    """The list of documents; of one, that the server itself checks fields, which is all that Helm looks for."""
    if not version:
        names = [f"api{'s' if '/' in one else ''}/{one}" for one in objects.kinds]
        return {"paths": {one: {"serverRelativeURL": f"/openapi/v3/{one}"} for one in names}}
    api_version = version.split("/", 1)[1]
    group, _, number = api_version.rpartition("/")
    paths = {
        f"/{version}/{plural}/{{name}}": {
            "patch": {
                "operationId": f"patch{kind}",
                "responses": {"200": {"description": "OK"}},
                "parameters": [{"name": name, "in": "query"} for name in ("dryRun", "fieldManager", "fieldValidation")],
                "x-kubernetes-group-version-kind": {"group": group, "version": number, "kind": kind},
            }
        }
        for kind, plural in objects.kinds[api_version].items()
    }
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.31.0"}, "paths": paths}


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of its own, and its key."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key


def _groups(objects: Objects) -> list[Object]:
    versions = [one for one in objects.kinds if "/" in one]
    entries = {one: {"groupVersion": one, "version": one.split("/")[1]} for one in versions}
    return [
        {"name": one.split("/")[0], "versions": [entries[one]], "preferredVersion": entries[one]} for one in versions
    ]


def _selector(query: Mapping[str, str]) -> Mapping[str, str]:
    words = [word for word in query.get("labelSelector", "").split(",") if word]
    return dict(word.replace("==", "=").split("=", 1) for word in words)


def _has_name(one: Object, query: Mapping[str, str]) -> bool:
    wanted = query.get("fieldSelector", "")
    return not wanted.startswith("metadata.name=") or one["metadata"]["name"] == wanted.partition("=")[2]


def _merge(into: dict[str, Any], given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value is None:
            into.pop(name, None)
        elif isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value
