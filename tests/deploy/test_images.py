"""The Dockerfiles under hadolint; the compose file against its specification, its rules and ``.env.example``."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec.models import ComposeSpecification, Service

from tests.deploy.stack.compose import find_compose

DOCKERFILES = sorted(
    str(path.relative_to(Path(__file__).parents[2]))
    for folder in ("deploy/docker", "tests/deploy/stack/standins")
    for path in (Path(__file__).parents[2] / folder).glob("*.Dockerfile")
)
PROCESSES = {"memory-store", "gateway", "worker", "inference", "inference-cpu", "inference-reader"} | {
    "redis",
    "qdrant",
    "prometheus",
    "grafana",
}


@pytest.fixture(scope="module")
def services(root: Path) -> dict[str, dict[str, Any]]:
    return yaml.safe_load((root / "docker-compose.yml").read_text())["services"]


def names_in(text: str) -> set[str]:
    """The variables that compose replaces; ``$$`` is a plain dollar."""
    return set(re.findall(r"(?<!\$)\$\{([A-Z0-9_]+)", text))


def explained(root: Path) -> list[str]:
    lines = (root / ".env.example").read_text().splitlines()
    return [line.partition("=")[0] for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_hadolint_has_no_complaint(root: Path, dockerfile: str) -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, root / dockerfile], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_compose_file_follows_the_specification(root: Path) -> None:
    file = yaml.safe_load((root / "docker-compose.yml").read_text())
    ComposeSpecification.model_validate(file)  # types and forms; a key that it does not know it lets pass
    known = {field.alias or name for name, field in Service.model_fields.items()}
    assert set(file["services"]) == PROCESSES
    assert {name: set(service) - known for name, service in file["services"].items() if set(service) - known} == {}


@pytest.mark.parametrize("profile", ["cpu", "gpu", "external"])
def test_compose_itself_reads_the_file_as_the_profile_means_it(root: Path, tmp_path: Path, profile: str) -> None:
    compose = find_compose()
    if compose is None or not compose.reads_ours:
        pytest.skip("there is no Compose 2 here")
    made(root, tmp_path / ".env", "--profile", profile, "--engine-url", "https://e.example/v1")
    given = ["--project-directory", str(root), "--env-file", str(tmp_path / ".env"), "--profile", profile]
    done = subprocess.run([*compose.command, *given, "config", "--services"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    engine = {"cpu": {"inference-cpu"}, "gpu": {"inference"}, "external": set[str]()}[profile]
    assert set(done.stdout.split()) == PROCESSES - {"inference", "inference-cpu", "inference-reader"} | engine


def configured(root: Path, folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """The services as Compose reads our file in ``folder``, with an ``.env`` there."""
    compose = find_compose()
    if compose is None or not compose.reads_ours:
        pytest.skip("there is no Compose 2 here")
    shutil.copy(root / "docker-compose.yml", folder)
    made(root, folder / ".env", *arguments)
    command = [*compose.command, "--project-directory", str(folder), "config", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["services"]


def test_a_file_of_settings_reaches_every_process_of_ours(root: Path, tmp_path: Path) -> None:
    (tmp_path / "memloop.env").write_text("MEMLOOP_LONG_READ_KEEP_S=86400\n")
    found = configured(root, tmp_path, "--profile", "cpu", "--reader")
    kept = {name for name, service in found.items() if "MEMLOOP_LONG_READ_KEEP_S" in service.get("environment", {})}
    assert kept == {"gateway", "worker", "memory-store", "inference-cpu", "inference-reader"}


def test_the_file_of_settings_may_be_absent(root: Path, tmp_path: Path) -> None:
    assert "MEMLOOP_LONG_READ_KEEP_S" not in configured(root, tmp_path)["gateway"]["environment"]


def test_what_env_sets_wins_over_the_file_of_settings(root: Path, tmp_path: Path) -> None:
    (tmp_path / "memloop.env").write_text("MEMLOOP_STORE_URL=http://elsewhere:1\nMEMLOOP_PORT=1\n")
    found = configured(root, tmp_path)
    assert found["gateway"]["environment"]["MEMLOOP_STORE_URL"] == "http://memory-store:7801"
    assert found["worker"]["environment"]["MEMLOOP_PORT"] == "7804"


def test_ports_are_published_on_loopback_only(services: dict[str, dict[str, Any]]) -> None:
    ports = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert set(ports) == {"gateway", "prometheus", "grafana"}
    assert all(port.startswith("127.0.0.1:") for published in ports.values() for port in published)


@pytest.mark.parametrize("name", sorted(PROCESSES))
def test_every_container_is_confined_and_bounded(services: dict[str, dict[str, Any]], name: str) -> None:
    service = services[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}
    assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", ["redis", "qdrant", "prometheus", "grafana"])
def test_images_of_others_have_a_version_and_a_health_check(services: dict[str, dict[str, Any]], name: str) -> None:
    assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+(\.\d+)?[a-z-]*(@sha256:[0-9a-f]{64})?", services[name]["image"])
    assert services[name]["healthcheck"]["test"]


def test_no_image_of_ours_has_a_public_name_that_somebody_else_could_take(services: dict[str, dict[str, Any]]) -> None:
    built = [service["image"] for service in services.values() if "build" in service]
    assert len(built) == 6
    assert {image.partition("/memloop}/")[0] for image in built} == {"${MEMLOOP_REGISTRY:-localhost"}


def test_nothing_starts_before_what_it_needs_is_healthy(services: dict[str, dict[str, Any]]) -> None:
    needs = {name: service.get("depends_on", {}) for name, service in services.items()}
    assert {need["condition"] for one in needs.values() for need in one.values()} == {"service_healthy"}
    for name in ("gateway", "worker"):
        assert set(needs[name]) == {"redis", "memory-store", "inference", "inference-cpu", "inference-reader"}
        assert needs[name]["inference"]["required"] is False  # the profiles decide


def test_redis_and_qdrant_are_on_a_network_without_a_way_out(root: Path, services: dict[str, dict[str, Any]]) -> None:
    networks = yaml.safe_load((root / "docker-compose.yml").read_text())["networks"]
    assert networks["data"]["internal"] is True
    assert services["redis"]["networks"] == services["qdrant"]["networks"] == ["data"]


def test_every_variable_is_explained_and_none_for_nothing(root: Path) -> None:
    used = names_in((root / "docker-compose.yml").read_text())
    known = explained(root)
    assert len(known) == len(set(known))
    assert used == set(known) - {"COMPOSE_PROFILES"}  # compose itself reads that one


def test_every_variable_stands_under_a_comment(root: Path) -> None:
    blocks = (root / ".env.example").read_text().split("\n\n")
    assert [block for block in blocks if not block.startswith("# ")] == []
    assert len(blocks) > 5


def made(root: Path, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, root / "deploy/make_env.py", "--out", out, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def values(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def test_make_env_fills_every_secret_with_another_and_shows_the_key_alone(root: Path, tmp_path: Path) -> None:
    done = made(root, tmp_path / ".env")
    found, asked = values(tmp_path / ".env"), values(root / ".env.example")
    secrets = [found[name] for name, value in asked.items() if value == "<secret>"]
    assert len(secrets) == len(set(secrets)) == 7
    assert all(len(secret) >= 64 for secret in secrets)
    assert done.stdout.strip() not in (tmp_path / ".env").read_text()
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600


def test_the_key_that_make_env_gives_to_an_app_manages_no_keys(root: Path, tmp_path: Path) -> None:
    done = made(root, tmp_path / ".env")
    entries = [entry.split(" scopes=") for entry in values(tmp_path / ".env")["MEMLOOP_API_KEYS"].split(",")]
    scopes = {digest.partition(":")[2]: set(names.split("+")) for digest, names in entries}
    operators = done.stderr.partition("/v1/admin alone: ")[2].split()[0]
    app, operator = (scopes[hashlib.sha256(key.encode()).hexdigest()] for key in (done.stdout.strip(), operators))
    assert app == {"chat", "memory:read", "memory:write", "long-read"}
    assert (operator, len(scopes)) == ({"admin"}, 2)


def test_make_env_writes_a_key_that_compose_reads_unchanged(root: Path, tmp_path: Path) -> None:
    endpoint = ("--profile", "external", "--engine-url", "https://e.example/v1", "--model", "m", "--engine-api-key")
    made(root, tmp_path / ".env", *endpoint, "sk-a$bcd$1x")
    assert values(tmp_path / ".env")["MEMLOOP_ENGINE_API_KEY"] == "'sk-a$bcd$1x'"
    refused = made(root, tmp_path / "other", *endpoint, "sk-it's")
    assert (refused.returncode, (tmp_path / "other").exists()) == (1, False)


def test_make_env_leaves_a_file_that_is_there(root: Path, tmp_path: Path) -> None:
    made(root, tmp_path / ".env")
    before = (tmp_path / ".env").read_bytes()
    again = made(root, tmp_path / ".env")
    assert (again.returncode, again.stdout) == (1, "")
    assert (tmp_path / ".env").read_bytes() == before


def test_make_env_asks_for_the_endpoint_of_the_external_profile(root: Path, tmp_path: Path) -> None:
    assert made(root, tmp_path / ".env", "--profile", "external").returncode == 2
    assert not (tmp_path / ".env").exists()
    made(root, tmp_path / ".env", "--profile", "external", "--engine-url", "https://e.example/v1", "--model", "m")
    found = values(tmp_path / ".env")
    assert (found["MEMLOOP_ENGINE_URL"], found["MEMLOOP_INFERENCE_URL"]) == ("https://e.example/v1", "")


@pytest.mark.parametrize(
    ("given", "reached"),
    [
        ("http://localhost:8000/v1", "http://host.docker.internal:8000/v1"),
        ("http://127.0.0.1:11434/v1", "http://host.docker.internal:11434/v1"),
        ("http://[::1]:8000/v1", "http://host.docker.internal:8000/v1"),
        ("http://0.0.0.0/v1", "http://host.docker.internal/v1"),
        ("https://e.example/v1", "https://e.example/v1"),
        ("http+srv://_http._tcp.e.example/v1", "http+srv://_http._tcp.e.example/v1"),
    ],
)
def test_an_engine_on_this_machine_has_a_name_that_containers_reach(
    root: Path, tmp_path: Path, services: dict[str, dict[str, Any]], given: str, reached: str
) -> None:
    done = made(root, tmp_path / ".env", "--profile", "external", "--engine-url", given)
    assert values(tmp_path / ".env")["MEMLOOP_ENGINE_URL"] == reached
    assert (reached in done.stderr) == (given != reached)
    for name in ("gateway", "worker"):
        assert services[name]["extra_hosts"] == ["host.docker.internal:host-gateway"]


@pytest.mark.parametrize("name", ["CORS_ORIGINS", "ROOT_PATH", "USER_HEADERS", "USER_HEADER_KEYS"])
def test_a_setting_for_clients_is_set_in_env(root: Path, services: dict[str, dict[str, Any]], name: str) -> None:
    assert services["gateway"]["environment"][f"MEMLOOP_{name}"] == f"${{MEMLOOP_{name}:-}}"
    assert f"MEMLOOP_{name}" in explained(root)


def launcher_settings(root: Path) -> set[str]:
    text = (root / "services/inference/inference/settings.py").read_text()
    return {f"MEMLOOP_{name.upper()}" for name in re.findall(r"^    (serve_\w+):", text, re.MULTILINE)}


@pytest.mark.parametrize("name", ["inference", "inference-cpu", "inference-reader"])
def test_every_setting_of_the_engine_reaches_its_container(
    root: Path, services: dict[str, dict[str, Any]], name: str
) -> None:
    of_the_image = {"MEMLOOP_SERVE_PYTHON", "MEMLOOP_SERVE_NAME"}
    assert launcher_settings(root) - of_the_image <= set(services[name]["environment"])


def test_a_first_start_may_download_for_an_hour(services: dict[str, dict[str, Any]]) -> None:
    service = services["inference"]
    assert service["environment"]["MEMLOOP_SERVE_START_TIMEOUT_S"] == "${MEMLOOP_SERVE_START_TIMEOUT_S:-3600}"
    assert service["healthcheck"] == {"start_period": "${MEMLOOP_SERVE_START_TIMEOUT_S:-3600}s"}


def test_make_env_starts_a_reader_beside_the_cpus_model_and_nowhere_else(root: Path, tmp_path: Path) -> None:
    assert made(root, tmp_path / ".env", "--profile", "gpu", "--reader").returncode == 2
    assert made(root, tmp_path / ".env", "--profile", "cpu", "--reader", "--model", "mine").returncode == 2
    made(root, tmp_path / ".env", "--profile", "cpu", "--reader")
    found = values(tmp_path / ".env")
    assert found["COMPOSE_PROFILES"] == "cpu,reader"
    assert found["MEMLOOP_MODEL"] == "memloop-tiny-writer"
    assert found["MEMLOOP_MODELS"] == "/etc/memloop/models/writer-reader.toml"


def test_the_models_file_names_the_containers_and_what_they_serve(
    root: Path, services: dict[str, dict[str, Any]]
) -> None:
    file = tomllib.loads((root / "deploy/models/writer-reader.toml").read_text())
    urls = {id_: (model["engine_url"], model["inference_url"]) for id_, model in file["models"].items()}
    assert urls == {
        "memloop-tiny-writer": ("http://inference:7803/v1", "http://inference:7802"),
        "reader": ("http://inference-reader:7803/v1", "http://inference-reader:7802"),
    }
    assert services["inference-cpu"]["networks"]["default"]["aliases"] == ["inference"]
    assert services["inference-reader"]["environment"]["MEMLOOP_SERVE_NAME"] == "reader"
    for name in ("gateway", "worker"):
        assert "./deploy/models:/etc/memloop/models:ro" in services[name]["volumes"]
