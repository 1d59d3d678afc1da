"""Measures calls of the published length: 5,000-token chunks, replies of up to 1,024 tokens, on vLLM.

The tiny model answers in hundredths of a second, so the overhead of a chunk's way through Redis shows. A model of the
published sizes takes seconds. On two cores a small network with random weights takes seconds too: its replies are
nonsense of full length, but only their cost matters.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import orjson

from benchmarks.long_read.real import Reading, reader_on
from benchmarks.long_read.sizes import QUESTION, write_prose
from benchmarks.tiny_engine import tiny_engine

_CHECKPOINT: Final = Path("services/inference/models/memloop-tiny")
_WINDOW_TOKENS: Final = 16_384
_SIZE: Final = {
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 6,
    "layer_types": ["full_attention"] * 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": _WINDOW_TOKENS,
}
NAME: Final = "random-6m"
ALONE_TOKENS: Final = 40_000
MANY_TOKENS: Final = 10_000


@contextmanager
def slow_engine() -> Generator[str]:
    """Start vLLM with the random network and yield its base URL."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / NAME
        shutil.copytree(_CHECKPOINT, checkpoint, ignore=shutil.ignore_patterns("*.safetensors", "*.md"))
        config = orjson.loads((checkpoint / "config.json").read_bytes())
        (checkpoint / "config.json").write_bytes(orjson.dumps(config | _SIZE))
        settings = {
            "MEMLOOP_MODEL": str(checkpoint),
            "MEMLOOP_SERVE_NAME": NAME,
            "MEMLOOP_SERVE_LOAD_FORMAT": "dummy",
            "MEMLOOP_SERVE_MAX_MODEL_LEN": str(_WINDOW_TOKENS),
            "MEMLOOP_SERVE_TOOL_CALL_PARSER": "hermes",
        }
        with tiny_engine(**settings) as url:
            yield url


def measured() -> dict[str, object]:
    """Measure one read alone, then many short concurrent ones."""
    with slow_engine() as url:
        return asyncio.run(_measured(url))


async def _measured(url: str) -> dict[str, object]:
    async with reader_on(url, _reading(ALONE_TOKENS)) as reader:
        alone = await reader.alone()
    async with reader_on(url, _reading(MANY_TOKENS)) as reader:
        many = await reader.many()
    return {name: value for name, value in (alone | many).items() if name != "answer"}


def _reading(tokens: int) -> Reading:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prose.txt"
        write_prose(path, tokens)
        return Reading(path.read_text(), QUESTION, model=NAME, profile="default")
