"""A person's request for their data, and for its erasure.

    MEMLOOP_URL=http://127.0.0.1:7800 python examples/cookbook/export_and_erase.py ada ada.jsonl

The export has every version of every memory and the turns that are kept, one JSON object a line. The erasure removes
all of it, on every replica, and wins over writes that are still on their way. Backups are yours to erase.
"""

import json
import os
import sys
from pathlib import Path

import httpx


def export(gateway: httpx.Client, user_id: str, target: Path) -> int:
    """Write the person's data. Returns the number of versions; raises ValueError if lines are missing."""
    request = {"user_id": user_id, "include_raw": True}
    with gateway.stream("POST", "/v1/memory/export", json=request) as response, target.open("w") as file:
        response.raise_for_status()
        last = ""
        for last in response.iter_lines():
            file.write(f"{last}\n")
    if "exported" not in (end := json.loads(last)):
        raise ValueError(f"the export of {user_id} is not complete: {end}")
    return end["exported"]


def erase(gateway: httpx.Client, user_id: str) -> dict[str, int]:
    """Erase the person everywhere. Returns the receipt: what was removed, by place."""
    response = gateway.delete("/v1/memory", params={"user_id": user_id})
    response.raise_for_status()
    return response.json()


def main() -> None:
    """Export and erase the person whom the command line names."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    user_id, target = sys.argv[1:]
    headers = {"Authorization": f"Bearer {key}"} if (key := os.environ.get("MEMLOOP_API_KEY")) else {}
    url = os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800")
    with httpx.Client(base_url=url, headers=headers, timeout=300) as gateway:
        print(f"{export(gateway, user_id, Path(target))} versions in {target}")
        print(f"erased: {erase(gateway, user_id)}")


if __name__ == "__main__":
    main()
