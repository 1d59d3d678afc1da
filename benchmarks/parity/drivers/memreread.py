"""Runs MemReread's own API loop from a checkout. Uses the standard library and the checkout, never Memloop.

Its job is a JSON object on standard input; its exit status is 3 when a module is missing, named on standard error.
"""

import asyncio
import json
import sys


async def main(job):
    from exp.interface.mem_reread_api import MemReread_API
    from quick_start import chunk_worker
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(job["tokenizer"])
    for item in job["items"]:
        agent = MemReread_API(
            tokenizer_model=job["tokenizer"],
            model_name=item["model"],
            base_url=job["base_url"],
            api_key="none",
            max_width=job["max_rereads"] + 1,
            max_nodes=job["max_rereads"] + 1,
        )
        data = chunk_worker(
            {"question": item["question"], "context": item["document"]}, model=item["model"], tokenizer=tokenizer
        )
        await agent(question=data["question"], context=data["context"], context_chunks=data["context_chunks"])


if __name__ == "__main__":
    job = json.load(sys.stdin)
    sys.path.insert(0, job["checkout"])
    try:
        asyncio.run(main(job))
    except ModuleNotFoundError as error:
        print(f"missing: {error.name}", file=sys.stderr)
        sys.exit(3)
