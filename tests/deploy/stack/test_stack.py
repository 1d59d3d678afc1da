"""The stack of ``docker-compose.yml`` on real containers: it starts, is guarded, is watched, and passes the README's
smoke test, also after a restart.

Grafana is not among them: its image cannot be pulled everywhere, and no package registry carries it.
"""

import json
import time
import urllib.request

import pytest

from tests.deploy.stack.compose import ComposeStack, smoke
from tests.deploy.stack.docker import docker

pytestmark = pytest.mark.containers

_WITHOUT_A_KEY = """
import json, urllib.error, urllib.request
def status(url):
    try:
        return urllib.request.urlopen(url, timeout=5).status
    except urllib.error.HTTPError as refusal:
        return refusal.code
import socket
redis = socket.create_connection(("redis", 6379), 5)
redis.sendall(b"PING\\r\\n")
print(json.dumps({
    "gateway": status("http://gateway:7800/v1/models"),
    "store": status("http://memory-store:7801/v1/admin/collections"),
    "qdrant": status("http://qdrant:6333/collections"),
    "engine": status("http://inference:7803/v1/models"),
    "redis": redis.recv(100).decode().split(" ")[0],
}))
"""
_WATCHED = {"gateway", "worker", "memory-store", "qdrant", "inference", "engine", "prometheus"}
_SCRAPED_S = 90.0


def test_the_readmes_smoke_test_passes(stack: ComposeStack) -> None:
    done = smoke(stack)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_smoke_test_fails_where_a_key_is_not_known(stack: ComposeStack) -> None:
    done = smoke(stack, api_key="ml_of_nobody")
    assert done.returncode == 1
    assert "401" in done.stdout


def test_nothing_inside_answers_without_a_key_either(stack: ComposeStack) -> None:
    said = docker("exec", stack.container("gateway"), "python", "-c", _WITHOUT_A_KEY)
    assert json.loads(said) == {"gateway": 401, "store": 401, "qdrant": 401, "engine": 401, "redis": "-NOAUTH"}


def test_only_the_loopback_of_this_machine_is_listened_on(stack: ComposeStack) -> None:
    bound = {
        (service, binding["HostIp"])
        for service in stack.services
        for bindings in stack.inspect(service)["NetworkSettings"]["Ports"].values()
        for binding in bindings or ()
    }
    assert bound == {("gateway", "127.0.0.1"), ("prometheus", "127.0.0.1")}


def test_redis_syncs_every_write_and_evicts_nothing(stack: ComposeStack) -> None:
    ask = ["exec", stack.container("redis"), "redis-cli", "CONFIG", "GET"]
    told = [docker(*ask, name).split()[1] for name in ("appendonly", "appendfsync", "maxmemory-policy")]
    assert told == ["yes", "always", "noeviction"]


def test_prometheus_reaches_every_process(stack: ComposeStack) -> None:
    deadline = time.monotonic() + _SCRAPED_S
    while (up := _up(stack)) < _WATCHED and time.monotonic() < deadline:
        time.sleep(2)
    assert up >= _WATCHED


def test_after_a_restart_all_is_well_again(stack: ComposeStack) -> None:
    ours = ("redis", "qdrant", "memory-store", "gateway", "worker")
    stack.compose("restart", *ours)
    stack.wait_healthy()
    codes = {service: stack.inspect(service)["State"]["OOMKilled"] for service in ours}
    assert not any(codes.values())
    done = smoke(stack)
    assert done.returncode == 0, done.stdout + done.stderr


def _up(stack: ComposeStack) -> set[str]:
    """The jobs that Prometheus scrapes with success."""
    url = f"http://127.0.0.1:{stack.ports['MEMLOOP_PROMETHEUS_PORT']}/api/v1/targets?state=active"
    with urllib.request.urlopen(url, timeout=10) as response:
        targets = json.load(response)["data"]["activeTargets"]
    return {target["labels"]["job"] for target in targets if target["health"] == "up"}
