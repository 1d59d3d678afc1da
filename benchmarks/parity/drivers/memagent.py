"""Runs one of MemAgent's own evaluation loops from a checkout, by its module's name.

It uses the standard library and the checkout, never Memloop.

Its job is a JSON object on standard input; its exit status is 3 when a module is missing, named on standard error.
"""

import asyncio
import json
import os
import sys
from importlib import import_module
from urllib.parse import urlsplit


async def main(job):
    from transformers import AutoTokenizer

    loop = import_module(f"utils.{job['loop']}")
    tokenizer = AutoTokenizer.from_pretrained(job["tokenizer"])
    for number, item in enumerate(job["items"], 1):
        data = {"_id": number, "context": item["document"], "input": item["question"]}
        await loop.async_query_llm(data, item["model"], tokenizer)


if __name__ == "__main__":
    job = json.load(sys.stdin)
    url = urlsplit(job["base_url"])
    os.environ |= {
        "SERVE_HOST": url.hostname,
        "SERVE_PORT": str(url.port),
        "RECURRENT_CHUNK_SIZE": str(job["chunk_tokens"]),
        "RECURRENT_MAX_NEW": "1024",
    }
    sys.path.insert(0, f"{job['checkout']}/taskutils/memory_eval")
    try:
        asyncio.run(main(job))
    except ModuleNotFoundError as error:
        print(f"missing: {error.name}", file=sys.stderr)
        sys.exit(3)
