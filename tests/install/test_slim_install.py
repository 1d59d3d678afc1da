"""The wheels of ``make dist`` in a new environment, without compiler, Node and torch: three commands to an answer.

One environment asks an endpoint, the other has the small model.

``make test-install`` runs it, for each supported Python that the machine has.
"""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from openai import AsyncOpenAI

from tests.fakes.ports import free_port
from tests.fakes.processes import wait_for
from tests.fakes.strict_endpoint import MEMORY, StrictEndpoint, strict_endpoint
from tests.fakes.strict_specs import SPECS

pytestmark = pytest.mark.slow
REPOSITORY: Final = Path(__file__).parents[2]
DIST: Final = Path(os.environ.get("MEMLOOP_DIST", REPOSITORY / "dist"))
PYTHONS: Final = ("3.11", "3.12")
MOST_BYTES: Final = 500_000_000
MOST_BYTES_WITH_MODEL: Final = 900_000_000
FACTS: Final = (
    ("I'm allergic to peanuts.", "What am I allergic to?", "peanut"),
    ("My sister Marta lives in Lisbon.", "Where does my sister Marta live?", "lisbon"),
    ("I work as a nurse in a children's hospital.", "What is my job?", "nurse"),
)
LETTER: Final = "The bakery opens at seven. Its owner, Mr Okafor, keeps the spare key under the blue flowerpot.\n"
_HEAVY: Final = ("torch", "vllm", "sentence_transformers", "transformers", "scipy", "sklearn")
_KEPT: Final = ("PIP_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_TIMEOUT_S: Final = 1200.0
_INSTALL: Final = ("pip", "install", "--quiet", "--only-binary", ":all:", "--find-links", str(DIST))
_LIKE_OPENAI: Final = replace(next(spec for spec in SPECS if spec.certain and spec.fields is not None), base="/v1")


class Machine:
    """A folder with a virtual environment, and an environment of variables whose PATH has nothing else."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self.venv = folder / "venv"
        subprocess.run([python, "-m", "venv", self.venv], check=True)

    async def run(self, *command: str, typed: str = "", **more: str) -> str:
        """Run a program of the environment, and return what it printed. Fails the test when the program fails."""
        program, *arguments = command
        process = await asyncio.create_subprocess_exec(
            self.venv / "bin" / program,
            *arguments,
            cwd=self.folder,
            env={**self._variables(), **more},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(_TIMEOUT_S):
            printed, _ = await process.communicate(typed.encode())
        assert process.returncode == 0, printed.decode()
        return printed.decode()

    @property
    def installed_bytes(self) -> int:
        """The size of the whole environment, pip and bytecode included."""
        return sum(path.lstat().st_size for path in self.venv.rglob("*") if path.is_file())

    def has(self, package: str) -> bool:
        return any(self.venv.glob(f"lib/python*/site-packages/{package}"))

    def processes(self) -> list[str]:
        """The command lines of what runs by this environment's Python."""
        found = [_command_line(folder) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
        return [line for line in found if str(self.venv) in line]

    def _variables(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
        return {**kept, "PATH": str(self.venv / "bin"), "HOME": str(self.folder), "LANG": "C.UTF-8"}


def _command_line(process: Path) -> str:
    with suppress(OSError):
        return (process / "cmdline").read_text().replace("\0", " ")
    return ""


def interpreter(version: str) -> str | None:
    """Return a Python of this version: on the PATH, or pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    return next((str(found) for found in candidates if found and _runs(str(found), version)), None)


def _runs(python: str, version: str) -> bool:
    question = [python, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(question, capture_output=True, text=True, check=False).stdout.strip() == version


@pytest.fixture(params=PYTHONS)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    version = str(request.param)
    python = interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    assert list(DIST.glob("memloop_cli-*.whl")), "make dist builds the wheels"
    return Machine(tmp_path, python)


async def test_three_commands_lead_to_a_recalled_answer(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    async with strict_endpoint(_LIKE_OPENAI) as engine:
        steps = _commands(engine)
        took = [await _timed(machine, command, typed, engine) for command, typed in steps]
        printed = took[-1][1]
        await machine.run("memloop", "down")

    assert f"recalled {MEMORY}" in printed
    assert [name for name in _HEAVY if machine.has(name)] == []
    size = machine.installed_bytes
    with capsys.disabled():
        seconds = ", ".join(
            f"{' '.join(command[:2])} {seconds:.0f} s" for (command, _), (seconds, _) in zip(steps, took, strict=True)
        )
        print(f"\n{machine.venv}: {len(steps)} commands ({seconds}), {size / 1e6:.0f} MB")
    assert size <= MOST_BYTES


async def test_the_small_model_needs_no_endpoint(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    await machine.run(*_INSTALL, "memloop-cli[small]")
    port = free_port(*range(1, 6))
    took = [await _seconds_up(machine, port)]
    await machine.run("memloop", "down")
    took.append(await _seconds_up(machine, port))
    async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="unused", max_retries=0) as client:
        for fact, _, _ in FACTS:
            await _said(client, fact)
        answers = [await _said(client, question) for _, question, _ in FACTS]
    (machine.folder / "letter.txt").write_text(LETTER, "utf-8")
    read = await machine.run("memloop", "read", "letter.txt", "Where is the spare key of the bakery?")
    stopped = await machine.run("memloop", "down")

    with capsys.disabled():
        seconds = ", ".join(f"{each:.0f} s" for each in took)
        print(f"\n{machine.venv}: up in {seconds}; {machine.installed_bytes / 1e6:.0f} MB\n{answers}\n{read}")
    assert [expected for answer, (_, _, expected) in zip(answers, FACTS, strict=True) if expected not in answer] == []
    assert "flowerpot" in read
    assert "The stack is stopped." in stopped
    wait_for(lambda: machine.processes() == [], "the end of all processes")
    assert not (machine.folder / "intel").exists()  # where OpenVINO's reports keep their number of this machine
    assert [name for name in _HEAVY if machine.has(name)] == []
    assert machine.installed_bytes <= MOST_BYTES_WITH_MODEL


async def _seconds_up(machine: Machine, port: int) -> float:
    began = time.monotonic()
    await machine.run("memloop", "up", "--detach", "--port", str(port))
    return time.monotonic() - began


async def _said(client: AsyncOpenAI, text: str) -> str:
    """Say one thing in a conversation of its own, and return the answer in lower case."""
    answer = await client.chat.completions.create(
        model="memloop-small",
        messages=[{"role": "user", "content": text}],
        extra_body={"memory": {"user_id": "ada", "sync": True}},
    )
    return (answer.choices[0].message.content or "").lower()


def _commands(engine: StrictEndpoint) -> Sequence[tuple[Sequence[str], str]]:
    given = ("--engine-url", engine.url, "--model", engine.spec.model)
    port = free_port(*range(1, 6))
    return (
        ((*_INSTALL, "memloop-cli"), ""),
        (("memloop", "up", "--detach", "--port", str(port), *given), ""),
        (("memloop", "chat"), "Ann has a red boat.\n/new\nWhat colour is Ann's boat?\n"),
    )


async def _timed(machine: Machine, command: Sequence[str], typed: str, engine: StrictEndpoint) -> tuple[float, str]:
    key = engine.spec.headers.get("Authorization", "").removeprefix("Bearer ")
    began = time.monotonic()
    printed = await machine.run(*command, typed=typed, MEMLOOP_ENGINE_API_KEY=key)
    return time.monotonic() - began, printed
