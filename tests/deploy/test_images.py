"""The compose file against its specification, and the Dockerfiles under hadolint."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from compose_spec import ComposeSpecification

DOCKERFILES = ["gateway", "memory-store", "inference", "trainer"]


def test_the_compose_file_follows_the_specification(root: Path) -> None:
    text = (root / "docker-compose.yml").read_text()
    compose = ComposeSpecification.model_validate(yaml.safe_load(text))
    assert set(compose.services) == {"redis", "qdrant", "memory-store", "gateway", "worker", "inference"}


def test_compose_publishes_on_loopback_only(root: Path) -> None:
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


@pytest.mark.parametrize("name", DOCKERFILES)
def test_hadolint_has_no_complaint(root: Path, name: str) -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, root / f"deploy/docker/{name}.Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
