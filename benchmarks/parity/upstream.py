"""Runs a checkout's own loop in a process of its own, with a Python that has the checkout's dependencies."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from benchmarks.parity.items import CHUNK_TOKENS, MAX_REREADS, Item, Project

_DRIVERS: Final = Path(__file__).parent / "drivers"
_MARKS: Final[dict[Project, str]] = {
    "memreread": "exp/interface/mem_reread_api.py",
    "memagent": "taskutils/memory_eval/utils/recurrent_boxed.py",
    "memagent-table": "taskutils/memory_eval/utils/recurrent.py",
}
_NEEDS: Final[dict[Project, str]] = {
    "memreread": "openai httpcore transformers aiohttp redis tqdm dill pyyaml pandas filelock",
    "memagent": "aiohttp transformers tqdm",
    "memagent-table": "aiohttp transformers tqdm",
}
_MODULE_MISSING: Final = 3
_PATIENCE_S: Final = 600.0
_LAST_LINES: Final = 15
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")


class NoUpstream(Exception):
    """The published loop cannot be run; the message names the reason and the way out."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A user's checkout, and the Python that runs it."""

    checkout: Path
    python: str
    tokenizer: Path

    def projects(self) -> tuple[Project, ...]:
        """The loops of the checkout, by their files: MemAgent has one for its demo and one for its tables.

        Raises NoUpstream.
        """
        found: tuple[Project, ...] = tuple(
            project for project, mark in _MARKS.items() if (self.checkout / mark).is_file()
        )
        if not found:
            raise NoUpstream(
                f"{self.checkout} is no checkout of MemReread or MemAgent: no {' and no '.join(_MARKS.values())}"
            )
        return found

    async def read(self, project: Project, items: Sequence[Item], *, port: int) -> None:
        """Let a loop read all items on the model at this port. Raises NoUpstream."""
        job = {
            "checkout": str(self.checkout.resolve()),
            "tokenizer": str(self.tokenizer.resolve()),
            "base_url": f"http://127.0.0.1:{port}/v1",
            "chunk_tokens": CHUNK_TOKENS,
            "max_rereads": MAX_REREADS,
            "loop": Path(_MARKS[project]).stem,
            "items": [{"model": item.name, "question": item.question, "document": item.document} for item in items],
        }
        status, output = await self._run(_DRIVERS / f"{project.removesuffix('-table')}.py", orjson.dumps(job))
        if status == _MODULE_MISSING:
            raise NoUpstream(self._way_out(project, output))
        if status != 0:
            raise NoUpstream(f"{project}'s loop ended with status {status}; its last lines:\n{_last(output)}")

    async def _run(self, driver: Path, job: bytes) -> tuple[int, str]:
        try:
            process = await asyncio.create_subprocess_exec(
                *(self.python, "-u", str(driver)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=_environment(),
            )
        except OSError as error:
            raise NoUpstream(f"{self.python} cannot be run: {error.strerror}") from error
        try:
            async with asyncio.timeout(_PATIENCE_S):
                _, output = await process.communicate(job)
        except TimeoutError as error:
            raise NoUpstream(f"the published loop was still running after {_PATIENCE_S:.0f} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode or 0, output.decode(errors="replace")

    def _way_out(self, project: Project, output: str) -> str:
        return (
            f"{project}'s code needs a module that {self.python} lacks ({_last(output, 1)}). Make an environment:"
            f" python3 -m venv upstream && upstream/bin/pip install {_NEEDS[project]};"
            " then make parity UPSTREAM_PYTHON=upstream/bin/python"
        )


def _environment() -> dict[str, str]:
    """No keys, no proxies, no hub, and no compiled files in the checkout."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return kept | offline | {"PYTHONDONTWRITEBYTECODE": "1"}


def _last(output: str, lines: int = _LAST_LINES) -> str:
    return "\n".join(output.strip().splitlines()[-lines:])
