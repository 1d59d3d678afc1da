"""Takes memories over from mem0: the JSON of its ``get_all``, from its platform or its library.

    MEMLOOP_URL=http://127.0.0.1:7800 python examples/cookbook/migrate_from_mem0.py memories.json

Texts stay as they are, with their times, users, agents and runs; mem0's id goes into the metadata. A second run changes
nothing. mem0's own client then works with Memloop as its host (docs/api.md).
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

BATCH = 200


def add_of(memory: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of ``POST /v1/memory/batch`` for a memory of mem0's. Raises ValueError for one without a user."""
    if not memory.get("user_id"):
        raise ValueError(f"memory {memory.get('id')} names no user_id")
    scope = {name: memory[name] for name in ("user_id", "agent_id", "run_id") if memory.get(name)}
    told_at = {"timestamp": memory["created_at"]} if memory.get("created_at") else {}
    metadata = {**(memory.get("metadata") or {}), "mem0_id": memory["id"]}
    return {"messages": [{"role": "user", "content": memory["memory"]}], "metadata": metadata, **scope, **told_at}


def migrate(gateway: httpx.Client, memories: Sequence[Mapping[str, Any]]) -> list[str]:
    """Store all of them. Returns a line for each that was refused."""
    refused: list[str] = []
    for start in range(0, len(memories), BATCH):
        part = memories[start : start + BATCH]
        response = gateway.post("/v1/memory/batch", json={"adds": [add_of(memory) for memory in part]})
        response.raise_for_status()
        results = zip(part, response.json()["results"], strict=True)
        refused += [f"{memory['id']}: {result['error']}" for memory, result in results if result["error"]]
    return refused


def main() -> None:
    """Migrate the file that the command line names."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    read = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    memories = read["results"] if isinstance(read, dict) else read
    headers = {"Authorization": f"Bearer {key}"} if (key := os.environ.get("MEMLOOP_API_KEY")) else {}
    url = os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800")
    with httpx.Client(base_url=url, headers=headers, timeout=300) as gateway:
        refused = migrate(gateway, memories)
    print(f"{len(memories) - len(refused)} of {len(memories)} memories stored", *refused, sep="\n")
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
