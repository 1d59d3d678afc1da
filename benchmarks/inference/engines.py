"""Measures the engines that serve memloop-small on a processor, side by side. Run: ``make bench-small-engines``.

The launcher starts each one as it does for a user, and the same chats go to each over HTTP. One run.
"""

import asyncio
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import orjson
from rich.console import Console
from rich.table import Table

from benchmarks.tiny_engine import tiny_engine
from memloop.ports import Prompt, Sampling
from memloop.wire.chat import ChatMessage
from memloop_clients import EngineClient

ENGINES: Final = ("vllm-cpu", "openvino")
_MODEL: Final = "memloop-small"
_AT_ONCE: Final = 8
_REPLY_TOKENS: Final = 64
_SENTENCES: Final = 150
_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Row:
    """Figures of one engine: seconds until it is ready and warm, tokens a second, MiB of its process."""

    engine: str
    ready_s: float
    prompt_tokens_per_s: float
    reply_tokens_per_s: float
    eight_replies_tokens_per_s: float
    memory_mib: float


def _told(number: int, *, sentences: int) -> Prompt:
    """Return a prompt that begins unlike the others, so that no cache knows it, and asks for a long reply."""
    text = f"Story {number}. " + "The river ran past the old mill, and nobody knew when it had been built. " * sentences
    words = ChatMessage(role="user", content=f"{text}\nTell the story again in many words.")
    return Prompt((words,), Sampling(max_tokens=_REPLY_TOKENS if sentences == 1 else 1))


async def _timed(model: EngineClient, *prompts: Prompt) -> tuple[float, int, int]:
    """Return seconds, and the tokens of the prompts and of the replies."""
    began = time.perf_counter()
    replies = await asyncio.gather(*(model.complete(prompt) for prompt in prompts))
    took = time.perf_counter() - began
    return took, sum(reply.usage.input_tokens for reply in replies), sum(reply.usage.output_tokens for reply in replies)


async def _measured(engine: str, url: str, ready_s: float) -> Row:
    async with EngineClient(url, model=_MODEL) as model:
        long_s, long_tokens, _ = await _timed(model, _told(1, sentences=_SENTENCES))
        one_s, _, one_tokens = await _timed(model, _told(2, sentences=1))
        all_s, _, all_tokens = await _timed(model, *(_told(10 + number, sentences=1) for number in range(_AT_ONCE)))
    memory = _memory_mib(urlsplit(url).port or 0)
    return Row(engine, ready_s, long_tokens / long_s, one_tokens / one_s, all_tokens / all_s, memory)


def _memory_mib(port: int) -> float:
    """Return the resident memory of the process whose command line names the engine's port, and of its descendants."""
    parents, held, found = dict[int, int](), dict[int, float](), set[int]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            lines = dict(line.split(":", 1) for line in (folder / "status").read_text("utf-8").splitlines())
        except OSError:  # it has ended
            continue
        number = int(folder.name)
        parents[number], held[number] = int(lines["PPid"]), int(lines.get("VmRSS", "0 kB").split()[0]) / _MIB
        if b"--port" in words and str(port).encode() in words:
            found.add(number)
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sum(held[number] for number in found)


def main() -> None:
    """Measure every engine; the last line is one JSON object."""
    rows = list[Row]()
    for engine in ENGINES:
        began = time.perf_counter()
        with tiny_engine(MEMLOOP_MODEL=_MODEL, MEMLOOP_ENGINE=engine) as url:
            rows.append(asyncio.run(_measured(engine, url, time.perf_counter() - began)))
    table = Table(*asdict(rows[0]))
    for row in rows:
        table.add_row(row.engine, *(f"{value:.0f}" for value in list(asdict(row).values())[1:]))
    Console().print(table)
    first, last = rows[0], rows[-1]
    print(
        orjson.dumps(
            {
                "benchmark": "small-engines",
                "prompt_ratio": round(last.prompt_tokens_per_s / first.prompt_tokens_per_s, 2),
                "memory_ratio": round(last.memory_mib / first.memory_mib, 2),
                "rows": [asdict(row) for row in rows],
            }
        ).decode()
    )


if __name__ == "__main__":
    main()
