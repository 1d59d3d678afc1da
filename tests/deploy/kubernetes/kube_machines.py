"""Plays controllers and kubelets for the stand-in of the API: owners get pods, our programs run as processes.

Pods of the release are objects with an address; behind all gateways is one that keeps writes in memory. The tests' own
pods run their real programs.
"""

import contextlib
import copy
import itertools
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.deploy.kubernetes.kube_api import KubeApi
from tests.deploy.kubernetes.kube_objects import Key, Object, Refusal

_OWNERS: Final = {"Deployment": "deployments", "StatefulSet": "statefulsets"}
_READY: Final = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
}
_ESTABLISH_S: Final = 0.1
"""A new definition has no conditions for a moment; a reader must see that."""
SMOKE: Final = "ok  health\nall 9 checks hold\n"


class FakeGateway:
    """Chats, writes and exports, on an address of its own; ``pods`` are the engines that get the chats."""

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        self.engines: list[str] = []
        self.loses = False
        self.late_s = 0.0
        """Above 0, writes are queued (202) and stored so much later."""
        self._turn = itertools.count()
        self._written: dict[str, list[tuple[str, float]]] = defaultdict(list)
        self._known: dict[str, float] = {}
        self._lock = threading.Lock()
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(json.dumps(gateway.event(self.path.removeprefix("/v1/memory/events/"))))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self._send(gateway.answer(self.path, body, self.headers.get("idempotency-key", "")))

            def _send(self, text: str) -> None:
                data = text.encode()
                self.send_response(200)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
                """No access log."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def event(self, key: str) -> Object:
        """The event of a write."""
        return {"event_id": key, "status": "completed" if self._known[key] <= time.monotonic() else "pending"}

    def answer(self, path: str, body: Object, key: str) -> str:
        """The body of an answer."""
        with self._lock:
            if path == "/v1/memory/export":
                stored = [text for text, at in self._written[body["user_id"]] if at <= time.monotonic()]
                items = [{"item": {"memory": text}} for text in stored]
                return "\n".join(json.dumps(row) for row in [*items, {"exported": len(items)}])
            if path == "/v1/memory/add":
                at = self._known.get(key, time.monotonic() + self.late_s)
                if key not in self._known and not self.loses:
                    self._written[body["user_id"]].append((body["messages"][0]["content"], at))
                self._known[key] = at
                return json.dumps(self.event(key))
            if self.engines:
                self.tokens[self.engines[next(self._turn) % len(self.engines)]] += 5
            return json.dumps({"choices": [{"message": {"content": "Hello."}}]})


class Machines:
    """The cluster behind the API."""

    def __init__(self, api: KubeApi) -> None:
        self.api = api
        self.gateway = FakeGateway()
        self._addresses: dict[str, str] = {}
        self._servers: dict[str, Any] = {}
        self._net = f"127.{random.randint(64, 250)}.{random.randint(1, 250)}"
        self._numbers = itertools.count(2)
        self._changes: queue.SimpleQueue[tuple[str, Object] | None] = queue.SimpleQueue()
        api.objects.changed = self._changed
        api.logs = lambda pod: SMOKE if "smoke-test" in pod else "a log"
        api.address = lambda namespace, pod: self._addresses[f"{namespace}/{pod}"]
        self._make(("v1", "nodes", "", ""), _node())
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End every process and server."""
        self._changes.put(None)
        self._thread.join()
        for place in list(self._servers):
            self._end(place)
        self.gateway.server.shutdown()
        self.gateway.server.server_close()

    def _changed(self, what: str, one: Object) -> None:
        self.api.watched(what, one)
        self._changes.put((what, one))

    def _work(self) -> None:
        while (change := self._changes.get()) is not None:
            try:
                self._see(*change)
            except Refusal as refusal:
                if refusal.status != 404:  # it is not gone, but refused
                    print(f"stand-in: {change[1]['kind']} {change[1]['metadata']['name']}: {refusal}", flush=True)

    def _see(self, what: str, one: Object) -> None:
        kind, space = one["kind"], one["metadata"].get("namespace", "")
        if kind == "Namespace" and what == "created":
            name = one["metadata"]["name"]
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            self._make(("v1", "serviceaccounts", name, ""), account)
        elif kind in _OWNERS and what != "deleted":
            self._reconcile(("apps/v1", _OWNERS[kind], space, one["metadata"]["name"]))
        elif kind == "Pod" and what == "deleted":
            self._end(f"{space}/{one['metadata']['name']}")
            owner = one["metadata"].get("annotations", {}).get("stand-in/owner")
            if owner:
                plural, name = owner.split("/")
                self._reconcile(("apps/v1", plural, space, name))
        elif kind == "Pod" and what == "created" and "phase" not in one["status"]:
            self._run(one)
        elif kind == "CustomResourceDefinition" and what == "created":
            time.sleep(_ESTABLISH_S)
            self.api.objects.serve(one)
            key = ("apiextensions.k8s.io/v1", "customresourcedefinitions", "", one["metadata"]["name"])
            self._status(key, {"conditions": [_true("Established")]})
        elif kind == "Job" and what == "created":
            self._status(("batch/v1", "jobs", space, one["metadata"]["name"]), {"conditions": [_true("Complete")]})

    def _reconcile(self, key: Key) -> None:
        """As many ready pods of the owner's template as it wants, no others."""
        owner = self.api.objects.get(key)
        mark, wanted = json.dumps(owner["spec"]["template"], sort_keys=True), owner["spec"].get("replicas", 1)
        mine = [
            pod
            for pod in self._pods(key[2])
            if pod["metadata"]["annotations"].get("stand-in/owner") == f"{key[1]}/{key[3]}"
        ]
        fresh = [pod for pod in mine if pod["metadata"]["annotations"]["stand-in/template"] == mark]
        for _ in range(wanted - len(fresh)):
            self._make_pod(key, owner, mark)
        for pod in [*[pod for pod in mine if pod not in fresh], *fresh[wanted:]]:
            self.api.objects.delete(("v1", "pods", key[2], pod["metadata"]["name"]))
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), wanted)
        status = {**counts, "observedGeneration": owner["metadata"]["generation"]}
        if owner["status"] != status:
            self._status(key, status)

    def _make_pod(self, key: Key, owner: Object, mark: str) -> None:
        template = copy.deepcopy(owner["spec"]["template"])
        name = f"{key[3]}-{next(self._numbers)}"
        notes = template["metadata"].get("annotations", {}) | {
            "stand-in/owner": f"{key[1]}/{key[3]}",
            "stand-in/template": mark,
        }
        for claim in owner["spec"].get("volumeClaimTemplates", ()):
            template["spec"]["volumes"].append({"name": claim["metadata"]["name"], "emptyDir": {}})
        pod: Object = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] |= {"name": name, "annotations": notes}
        place, address = f"{key[2]}/{name}", self._address()
        self._addresses[place] = address
        if pod["metadata"]["labels"]["app.kubernetes.io/component"] == "inference":
            self._serve_engine(place, address)
        pod["status"] = {**_READY, "podIP": address}
        self._make(("v1", "pods", key[2], ""), pod)
        self._count_engines(key[2])

    def _serve_engine(self, place: str, address: str) -> None:
        gateway = self.gateway

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                data = f'vllm:generation_tokens_total{{engine="0"}} {gateway.tokens[place]}\n'.encode()
                self.send_response(200)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
                """No access log."""

        self._servers[place] = ThreadingHTTPServer((address, 7803), Handler)
        threading.Thread(target=self._servers[place].serve_forever, daemon=True).start()

    def _run(self, pod: Object) -> None:
        """Run one of the tests' programs; any other pod has ended well at once."""
        space, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        key, address = ("v1", "pods", space, name), self._address()
        [container] = pod["spec"]["containers"]
        if not container.get("command", [""])[-1].startswith("/files/"):
            self._status(key, {"phase": "Succeeded", "podIP": address})
            return
        self._addresses[f"{space}/{name}"] = address
        files = self.api.objects.get(("v1", "configmaps", space, "test-files"))["data"]
        folder = Path(tempfile.mkdtemp())
        program = folder / Path(container["command"][-1]).name
        program.write_text(files[program.name])
        given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
        given |= {"POD_IP": address, "LOAD_URL": self.gateway.url, "TERMINATION_LOG": str(folder / "words")}
        process = subprocess.Popen([sys.executable, str(program)], env={**os.environ, **given})
        self._servers[f"{space}/{name}"] = process
        self._status(key, {**_READY, "podIP": address})
        threading.Thread(target=self._await, args=(key, process, folder / "words"), daemon=True).start()

    def _await(self, key: Key, process: "subprocess.Popen[bytes]", words: Path) -> None:
        code = process.wait()
        ended = {"exitCode": code, "message": words.read_text() if words.exists() else ""}
        status = [{"name": "client", "state": {"terminated": ended}}]
        with contextlib.suppress(Refusal):
            self._status(key, {"phase": "Failed" if code else "Succeeded", "containerStatuses": status})

    def _end(self, place: str) -> None:
        found = self._servers.pop(place, None)
        if isinstance(found, ThreadingHTTPServer):
            found.shutdown()
            found.server_close()
        elif found is not None:
            found.kill()
            found.wait()
        self._count_engines(place.split("/")[0])

    def _count_engines(self, space: str) -> None:
        names = [pod["metadata"]["name"] for pod in self._pods(space) if _component(pod) == "inference"]
        self.gateway.engines = [f"{space}/{name}" for name in names]

    def _pods(self, space: str) -> list[Object]:
        found = self.api.objects.listed("v1", "pods", space, {})
        return [pod for pod in found if "annotations" in pod["metadata"]]

    def _make(self, key: Key, one: Object) -> None:
        self.api.objects.create(key, one, dry_run=False, strict=True)

    def _status(self, key: Key, status: Object) -> None:
        self.api.objects.replace(key, lambda one: one["status"].update(status))

    def _address(self) -> str:
        return f"{self._net}.{next(self._numbers) % 250 + 2}"


def _component(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get("app.kubernetes.io/component", ""))


def _true(kind: str) -> Object:
    return {"type": kind, "status": "True"}


def _node() -> Object:
    labels = {"kubernetes.io/hostname": "node1"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node1", "labels": labels},
        "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}},
    }
