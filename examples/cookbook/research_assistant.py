"""A research assistant that reads papers once and answers from what it remembers of them.

    MEMLOOP_URL=http://127.0.0.1:7800 python examples/cookbook/research_assistant.py paper.pdf "What was measured?"
    MEMLOOP_URL=http://127.0.0.1:7800 python examples/cookbook/research_assistant.py --ask "What was measured?"

`save_to_memory` stores what the read found out, under document and question. A later chat recalls it without reading
again. The key needs the scopes `long-read`, `memory:write` and `chat`.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx


@dataclass(frozen=True)
class Assistant:
    """The assistant of one person."""

    gateway: httpx.Client
    model: str
    user: str

    def study(self, document: Path, question: str) -> str:
        """Read the document for the question, remember what it says, and return the answer."""
        with document.open("rb") as file:
            form = {"data": {"purpose": "user_data"}, "files": {"file": (document.name, file)}}
            uploaded = _ok(self.gateway.post("/v1/files", **form))
        request = {
            "model": self.model,
            "question": question,
            "document": {"file_id": uploaded["id"]},
            "save_to_memory": {"user_id": self.user},
        }
        try:
            return _ok(self.gateway.post("/v1/long-read", json=request, timeout=3600))["output_text"]
        finally:
            self.gateway.delete(f"/v1/files/{uploaded['id']}")

    def ask(self, question: str) -> str:
        """Answer from memory."""
        chat = {
            "model": self.model,
            "messages": [{"role": "user", "content": question}],
            "memory": {"user_id": self.user, "mode": "read"},
        }
        return _ok(self.gateway.post("/v1/chat/completions", json=chat))["choices"][0]["message"]["content"]


def _ok(response: httpx.Response) -> dict[str, Any]:
    response.raise_for_status()
    return response.json()


def main() -> None:
    """Study the file that the command line names, or answer from memory."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    first, question = sys.argv[1:]
    headers = {"Authorization": f"Bearer {key}"} if (key := os.environ.get("MEMLOOP_API_KEY")) else {}
    url = os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800")
    with httpx.Client(base_url=url, headers=headers, timeout=120) as gateway:
        assistant = Assistant(gateway, os.environ.get("MEMLOOP_MODEL", "memloop-tiny"), "researcher")
        print(assistant.ask(question) if first == "--ask" else assistant.study(Path(first), question))


if __name__ == "__main__":
    main()
