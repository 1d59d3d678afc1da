"""What is inside the images, looked at from inside them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.stack.conftest import OURS
from tests.deploy.stack.docker import DockerError, docker
from tests.deploy.stack.images import size_bytes
from tests.kubernetes.images import build_scripted

pytestmark = pytest.mark.containers

MB = 1_000_000
LIMITS_MB = {"gateway": 200, "memory-store": 1_500, "inference-cpu": 3_000}
BUILD_TOOLS = ("pip", "pip3", "uv", "gcc", "cc", "g++", "make", "ld", "strip", "hatchling")
FIND_TOOLS = f"""
import importlib.util, shutil
print([name for name in {BUILD_TOOLS!r} if shutil.which(name) or importlib.util.find_spec(name)])
"""
MAIN = {
    "gateway": "gateway.main, gateway.worker",
    "memory-store": "memory_store.main",
    "inference-cpu": "inference.main",
}
TELL_PACKAGES = """
import json
from importlib.metadata import distributions
print(json.dumps([[one.metadata["Name"], one.version, one.requires or []] for one in distributions()]))
"""
LEFT_OUT: Mapping[str, set[str]] = {
    "gateway": {"huggingface-hub"},
    "memory-store": {"onnxruntime", "openvino-telemetry"},
    "inference-cpu": {"torchvision", "torchaudio", "torchcodec", "triton"},
}
"""By requirements/overrides.txt, and in requirements/images gateway-overrides.txt and store-overrides.txt."""


def python(tag: str, code: str, *more: str) -> str:
    """What a program prints inside a fresh container, with a read-only root and no capability."""
    confined = ["--rm", "--interactive", "--read-only", "--cap-drop", "ALL", "--network", "none", "--tmpfs", "/tmp"]
    return docker("run", *confined, *more, tag, "python", "-", given=code.encode(), timeout_s=180).strip()


def gaps(packages: list[tuple[str, str, list[str]]]) -> set[str]:
    """What the packages ask for and do not find among themselves, in its version."""
    have = {canonicalize_name(name): version for name, version, _ in packages}
    needs = (Requirement(text) for _, _, requires in packages for text in requires)
    wanted = [need for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return {need.name for need in wanted if not _is_met(need, have.get(canonicalize_name(need.name)))}


def _is_met(need: Requirement, version: str | None) -> bool:
    return version is not None and need.specifier.contains(version, prereleases=True)


def config(tag: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(docker("image", "inspect", tag))
    return found[0]["Config"]


@pytest.mark.parametrize("name", OURS)
def test_an_image_is_as_small_as_promised(images: Mapping[str, str], name: str) -> None:
    size = size_bytes(images[name])
    print(f"{name}: {size / MB:.0f} MB")
    assert size < LIMITS_MB[name] * MB


@pytest.mark.parametrize("name", OURS)
def test_an_image_runs_as_an_unprivileged_user(images: Mapping[str, str], name: str) -> None:
    assert config(images[name])["User"] == "10001:10001"
    assert python(images[name], "import os; print(os.getuid(), os.getgid())") == "10001 10001"


@pytest.mark.parametrize("name", OURS)
def test_no_build_tool_is_left(images: Mapping[str, str], name: str) -> None:
    assert python(images[name], FIND_TOOLS) == "[]"


def test_the_gateway_has_no_package_manager_of_the_system_either(images: Mapping[str, str]) -> None:
    code = "import shutil; print([name for name in ('apt', 'apt-get', 'dpkg', 'perl') if shutil.which(name)])"
    assert python(images["gateway"], code) == "[]"


@pytest.mark.parametrize("name", OURS)
def test_every_package_finds_what_it_asks_for(images: Mapping[str, str], name: str) -> None:
    assert gaps(json.loads(python(images[name], TELL_PACKAGES))) == LEFT_OUT[name]


@pytest.mark.parametrize("name", OURS)
def test_its_program_can_be_imported_on_a_read_only_root(images: Mapping[str, str], name: str) -> None:
    assert python(images[name], f"import {MAIN[name]}\nprint('imported')").endswith("imported")


def test_every_module_of_the_gateways_packages_survived_the_stripping(images: Mapping[str, str]) -> None:
    modules = (
        "aiohttp, httptools, obstore, orjson, pydantic_core, pypdf, pypdfium2, python_calamine, selectolax.lexbor, "
        "striprtf, tokenizers, uvloop, xlrd"
    )
    assert python(images["gateway"], f"import {modules}, mcp, yarl, cryptography.fernet\nprint('all')") == "all"


def test_the_store_compiles_its_embedding_model(images: Mapping[str, str]) -> None:
    code = """
import logging, sys
logging.basicConfig(stream=sys.stdout)
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, SentenceEncoder
print(len(SentenceEncoder(DEFAULT_MODEL, threads=1, batch=1).encode(["x"])[0]))
"""
    said = python(images["memory-store"], code)
    assert said.splitlines()[-1] == "384"
    assert "runs on torch" not in said  # as it would without the parts of OpenVINO that it needs


@pytest.mark.parametrize("name", OURS)
def test_an_image_has_labels_and_a_health_check(images: Mapping[str, str], name: str) -> None:
    found = config(images[name])
    labels = {key.rpartition(".")[2]: value for key, value in found["Labels"].items()}
    assert (labels["version"], labels["revision"]) == ("0.1.0", "test")
    assert labels["title"].startswith("memloop-")
    assert labels["description"]
    assert found["Healthcheck"]["Test"][0] == "CMD"


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_launcher_plans_for_the_engines_own_python(launcher: str, engine: str) -> None:
    settings = {"MEMLOOP_ENGINE": engine, "MEMLOOP_MODEL": "Qwen3-4B", "MEMLOOP_ENGINE_API_KEY": "k"}
    asked = [word for name, value in settings.items() for word in ("--env", f"{name}={value}")]
    plan = ["/opt/memloop/bin/python", "-m", "inference.main", "plan", "--gpu", "h100"]
    said = docker("run", "--rm", "--read-only", "--network", "none", *asked, launcher, *plan)
    assert f"python3 -m {engine}" in said
    assert "Qwen3-4B" in said


def test_the_launcher_leaves_the_engines_python_alone(launcher: str) -> None:
    code = "import importlib.util, sys; print(sys.prefix, importlib.util.find_spec('pydantic'))"
    assert docker("run", "--rm", launcher, "python3", "-c", code).strip().endswith("None")
    assert docker("run", "--rm", launcher, "/opt/memloop/bin/python", "-c", code).startswith("/opt/memloop ")


def test_the_launchers_image_takes_the_scripted_engine_of_the_clusters_suite(launcher: str) -> None:
    code = "import serve, shutil; print(serve.option('--host', 'none'), shutil.which('/opt/scripted/serve.py'))"
    said = docker("run", "--rm", "--network", "none", build_scripted(launcher), "/opt/memloop/bin/python", "-c", code)
    assert said.strip() == "none /opt/scripted/serve.py"


def test_the_trainers_image_holds_verl_and_ray_and_no_build_tool(trainer: str) -> None:
    print(f"trainer: {size_bytes(trainer) / MB:.0f} MB")
    code = "import os, ray, torch, trainer.__main__, verl; print(os.getuid(), sorted(os.listdir('recipes')) != [])"
    assert python(trainer, code).splitlines()[-1] == "10001 True"
    assert python(trainer, FIND_TOOLS) == "[]"
    older = {"tokenizers"}  # verl's transformers holds it below what memloop names; the trainer's own lock decides
    assert gaps(json.loads(python(trainer, TELL_PACKAGES))) <= older


def test_a_process_refuses_to_listen_openly_without_keys(images: Mapping[str, str]) -> None:
    with pytest.raises(DockerError, match="no keys are configured: refusing to listen"):
        docker("run", "--rm", "--network", "none", images["gateway"])
