"""The paper's chunk loop in token IDs: 7k in, 1k out, each document's calls one after the other.

Source: arXiv 2507.02259 (a window of 8K: question, memory and reply of 1,024 tokens, chunks of 5,000). Prompts are
token IDs, so that their lengths are exact with any tokenizer; random IDs replace the memory that random weights would
write, but the next call waits for the complete reply.
"""

import asyncio
import random
import time
from dataclasses import dataclass

from memloop.wire.chat import Json
from memloop.wire.memory import Usage
from memloop_clients import EngineClient

TEMPLATE, QUESTION, MEMORY, CHUNK, REPLY = 120, 1024, 1024, 5000, 1024
_FIRST_ID, _LAST_ID = 16, 4095
"""IDs that are not control tokens and exist in the stand-in tokenizer too."""


@dataclass(frozen=True, slots=True)
class Load:
    """Concurrent documents, and chunks of each; ``serial`` is the loop, otherwise all calls start at once."""

    documents: int
    chunks: int
    reply_tokens: int = REPLY
    serial: bool = True


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a load on one engine."""

    variant: str
    load: Load
    seconds: float
    usage: Usage

    @property
    def tokens_per_s(self) -> float:
        """Return prompt and reply tokens per second."""
        return (self.usage.input_tokens + self.usage.output_tokens) / self.seconds

    @property
    def s_per_1m_document(self) -> float:
        """Return one document's seconds per million tokens of text, with the others running beside it."""
        return self.seconds / (self.load.chunks * CHUNK) * 1e6

    def gpu_s_per_1m(self, gpus: int) -> float:
        """Return GPU-seconds per million tokens of documents."""
        return self.s_per_1m_document * gpus / self.load.documents

    def usd_per_1m(self, gpus: int, *, usd_per_hour: float) -> float:
        """Return the price at a GPU's hourly rate."""
        return self.gpu_s_per_1m(gpus) / 3600 * usd_per_hour


def prompt_ids(document: int, chunk: int, *, seed: int = 0) -> list[int]:
    """Build a prompt in the paper's order: template, question, memory, section; a document shares the first two."""
    return [
        *_ids("template", TEMPLATE),
        *_ids(f"{seed} question {document}", QUESTION),
        *_ids(f"{seed} memory {document} {chunk}", MEMORY),
        *_ids(f"{seed} chunk {document} {chunk}", CHUNK),
    ]


async def run_load(engine: EngineClient, model: str, variant: str, load: Load, *, seed: int) -> Measured:
    """Run the load on an engine. Raises ValueError when a reply has the wrong length."""

    async def call(document: int, chunk: int) -> Usage:
        body = request(model, prompt_ids(document, chunk, seed=seed), reply_tokens=load.reply_tokens)
        return usage_of(await engine.post_json("completions", body), load.reply_tokens)

    async def read(document: int) -> list[Usage]:
        return [await call(document, chunk) for chunk in range(load.chunks)]

    began = time.perf_counter()
    if load.serial:
        spent = sum(await asyncio.gather(*map(read, range(load.documents))), list[Usage]())
    else:
        calls = (call(document, chunk) for document in range(load.documents) for chunk in range(load.chunks))
        spent = await asyncio.gather(*calls)
    return Measured(variant, load, time.perf_counter() - began, sum(spent, Usage()))


def request(model: str, ids: list[int], *, reply_tokens: int) -> Json:
    """Build a greedy completion request of exactly ``reply_tokens`` tokens."""
    return {"model": model, "prompt": [*ids], "max_tokens": reply_tokens, "temperature": 0.0, "ignore_eos": True}


def usage_of(reply: Json, reply_tokens: int) -> Usage:
    """Return a call's usage. Raises ValueError when the reply ended early: its time would flatter."""
    usage = reply.get("usage")
    made = usage.get("completion_tokens") if isinstance(usage, dict) else None
    given = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if made != reply_tokens or not isinstance(given, int):
        raise ValueError(f"a reply has {made} tokens instead of {reply_tokens}")
    return Usage(input_tokens=given, output_tokens=reply_tokens, llm_calls=1)


def _ids(name: str, count: int) -> list[int]:
    rng = random.Random(name)
    return [rng.randint(_FIRST_ID, _LAST_ID) for _ in range(count)]
