"""The images' locks hold nothing that the workspace's lock does not, and what each part asks for itself."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

LOCKS = {
    "build": (),
    "gateway": ("packages/memloop", "packages/memloop-service", "packages/memloop-state", "services/gateway"),
    "memory-store": ("packages/memloop", "packages/memloop-service", "packages/memloop-state", "services/memory-store"),
    "launcher": ("packages/memloop", "packages/memloop-service", "services/inference"),
    "promotion": ("packages/memloop", "packages/memloop-service", "services/inference"),
    "inference-cpu": ("packages/memloop", "packages/memloop-service", "services/inference"),
}
OURS = {"memloop-core", "memloop-inference", "memloop-service", "memloop-state"}
APART = {"torch"}
"""Comes first, from an index of its own."""
LEFT_OUT = {"gateway": {"huggingface-hub"}, "memory-store": {"onnxruntime", "openvino-telemetry"}}
"""See requirements/overrides.txt, and in requirements/images gateway-overrides.txt and store-overrides.txt."""


def pins(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Version and hashes by name."""
    entries = re.split(r"\n(?=\S)", path.read_text().replace("\\\n", ""))
    found = (re.match(r"([a-z0-9._-]+)==(\S+)(.*)", entry, re.DOTALL) for entry in entries)
    return {one[1]: (one[2], frozenset(re.findall(r"--hash=(\S+)", one[3]))) for one in found if one}


def asked_for(part: Path) -> set[str]:
    """The names of the dependencies that a part declares."""
    declared = tomllib.loads((part / "pyproject.toml").read_text())["project"]["dependencies"]
    return {re.split(r"[^A-Za-z0-9._-]", text)[0].lower().replace("_", "-") for text in declared}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_is_the_workspaces(root: Path, lock: str) -> None:
    workspace, image = pins(root / "requirements/workspace.lock"), pins(root / f"requirements/images/{lock}.lock")
    assert len(image) > 5
    assert {name: pin for name, pin in image.items() if workspace.get(name) != pin} == {}
    assert all(hashes for _, hashes in image.values())


@pytest.mark.parametrize("lock", [lock for lock, parts in LOCKS.items() if parts])
def test_what_the_parts_declare_is_pinned(root: Path, lock: str) -> None:
    declared = set[str]().union(*(asked_for(root / part) for part in LOCKS[lock])) - LEFT_OUT.get(lock, set())
    assert declared - OURS - APART - pins(root / f"requirements/images/{lock}.lock").keys() == set()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_leaves_out_what_its_override_names(root: Path, lock: str) -> None:
    assert LEFT_OUT.get(lock, set()) & pins(root / f"requirements/images/{lock}.lock").keys() == set()


def test_what_the_gpu_image_compiles_finds_cudas_runtime(root: Path, tmp_path: Path) -> None:
    """torch's cpp_extension links with ``-L$CUDA_HOME/lib64 -lcudart``; here with a library laid out as the wheel's."""
    (tmp_path / "lib").mkdir()
    library = tmp_path / "lib/libcudart.so.13"
    runtime = ["cc", "-shared", "-Wl,-soname,libcudart.so.13", "-xc", "-", "-o", str(library)]
    subprocess.run(runtime, input="int cudaGetDevice(void) { return 0; }", text=True, check=True)
    dockerfile = (root / "deploy/docker/trainer-gpu.Dockerfile").read_text().replace("\\\n", " ")
    for link in re.findall(r"\bln -s [^&|;\n]+", dockerfile):
        subprocess.run(["sh", "-c", link], env={"cuda": str(tmp_path), "PATH": os.environ["PATH"]}, check=True)
    program = ["cc", "-xc", "-", f"-L{tmp_path}/lib64", "-lcudart", "-o", str(tmp_path / "program")]
    source = "int cudaGetDevice(void); int main(void) { return cudaGetDevice(); }"
    linked = subprocess.run(program, input=source, text=True, capture_output=True)
    assert linked.returncode == 0, linked.stderr


@pytest.mark.parametrize(
    "dockerfile", ["gateway", "memory-store", "inference", "inference-cpu", "promotion", "trainer-gpu"]
)
def test_images_install_by_hash_and_resolve_nothing(root: Path, dockerfile: str) -> None:
    text = (root / f"deploy/docker/{dockerfile}.Dockerfile").read_text().replace("\\\n", " ")
    steps = re.split(r"&&|\|\||\n", text)
    installs = [step for step in steps if re.search(r"\bpip\b.* install ", step)]
    assert installs
    for command in installs:
        assert "--no-deps" in command, command
        assert any(word in command for word in ("--require-hashes", "--no-index", "torch==", "FLASH_ATTN")), command
