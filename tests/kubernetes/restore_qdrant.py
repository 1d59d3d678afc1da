"""Puts the newest backup's collections back into the one Qdrant of a release. Standard library only.

``BACKUPS`` is the folder of backups, ``QDRANT_URL`` and ``QDRANT_API_KEY`` Qdrant's. What Qdrant holds is deleted
first. The documented steps of docs/backup.md: upload each snapshot, then point the alias at it.
"""

import json
import os
import urllib.request
import uuid
from pathlib import Path

_TIMEOUT_S = 300.0


def ask(method: str, path: str, data: bytes | None = None, kind: str = "application/json") -> dict:
    """The answer of Qdrant. Raises HTTPError and OSError."""
    headers = {"api-key": os.environ["QDRANT_API_KEY"], "content-type": kind}
    request = urllib.request.Request(os.environ["QDRANT_URL"] + path, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
        return json.loads(response.read())


def drop_all() -> int:
    """Delete every collection; how many there were."""
    names = [one["name"] for one in ask("GET", "/collections")["result"]["collections"]]
    for name in names:
        ask("DELETE", f"/collections/{name}")
    return len(names)


def upload(snapshot: Path) -> None:
    """One collection, named like the file, and the alias."""
    name, mark = snapshot.name.removesuffix(".snapshot"), uuid.uuid4().hex
    head = f'--{mark}\r\nContent-Disposition: form-data; name="snapshot"; filename="{snapshot.name}"\r\n\r\n'
    form = head.encode() + snapshot.read_bytes() + f"\r\n--{mark}--\r\n".encode()
    path = f"/collections/{name}/snapshots/upload?priority=snapshot"
    ask("POST", path, form, f"multipart/form-data; boundary={mark}")
    alias = {"create_alias": {"collection_name": name, "alias_name": "memloop"}}
    ask("POST", "/collections/aliases", json.dumps({"actions": [alias]}).encode())


def main() -> None:
    """Delete, then upload."""
    print("deleted", drop_all())
    newest = max(Path(os.environ["BACKUPS"]).glob("*/manifest.json")).parent
    for snapshot in sorted(newest.glob("*.snapshot")):
        upload(snapshot)
        print("restored", snapshot.name)


if __name__ == "__main__":
    main()
