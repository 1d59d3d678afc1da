"""Questions about a long contract, each answer with the places that support it.

    MEMLOOP_URL=http://127.0.0.1:7800 python examples/cookbook/contract_review.py contract.pdf "What is the notice?" …

All questions share one pass over the document. A statement without support in the text is marked: read those yourself.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx


@dataclass(frozen=True)
class Finding:
    """An answer, and for each statement of it the passages, empty where nothing in the document supports it."""

    question: str
    answer: str
    support: dict[str, list[str]]


def review(gateway: httpx.Client, document: Path, questions: Sequence[str], *, model: str) -> Iterator[Finding]:
    """Upload the document, read it once, and delete it."""
    with document.open("rb") as file:
        uploaded = _ok(gateway.post("/v1/files", data={"purpose": "user_data"}, files={"file": (document.name, file)}))
    try:
        _wait_for_text(gateway, uploaded["id"])
        request = {
            "model": model,
            "questions": list(questions),
            "document": {"file_id": uploaded["id"]},
            "evidence": True,
        }
        for output in _ok(gateway.post("/v1/long-read", json=request, timeout=3600))["outputs"]:
            yield Finding(output["question"], output["output_text"], _support(output["evidence"]))
    finally:
        gateway.delete(f"/v1/files/{uploaded['id']}")


def _wait_for_text(gateway: httpx.Client, file_id: str) -> None:
    """Wait until the text is taken out of the file: some seconds for hundreds of pages."""
    while (file := _ok(gateway.get(f"/v1/files/{file_id}")))["status"] == "uploaded":
        time.sleep(0.2)
    if file["status"] == "error":
        raise ValueError(f"{file['filename']}: {file['status_details']}")


def _support(evidence: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    support: dict[str, list[str]] = {}
    for one in evidence:
        passages = support.setdefault(one["statement"], [])
        if one["supported"]:
            passages.append(f"p. {one['page']}: {one['text']}" if one["page"] else one["text"])
    return support


def _ok(response: httpx.Response) -> dict[str, Any]:
    response.raise_for_status()
    return response.json()


def main() -> None:
    """Review the file that the command line names."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    path, *questions = sys.argv[1:]
    headers = {"Authorization": f"Bearer {key}"} if (key := os.environ.get("MEMLOOP_API_KEY")) else {}
    url = os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800")
    model = os.environ.get("MEMLOOP_MODEL", "memloop-tiny")
    with httpx.Client(base_url=url, headers=headers, timeout=120) as gateway:
        for finding in review(gateway, Path(path), questions, model=model):
            print(f"{finding.question}\n  {finding.answer}")
            for statement, passages in finding.support.items():
                print(f"    {'supported' if passages else 'NOT SUPPORTED'}: {statement}", *passages, sep="\n      ")


if __name__ == "__main__":
    main()
