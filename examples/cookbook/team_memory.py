"""A memory that a team's agents share, with the notes of one agent or one run apart.

    MEMLOOP_URL=http://127.0.0.1:7800 python examples/cookbook/team_memory.py

The team is the user. A search without ``agent_id`` covers all notes of the team; with ``agent_id`` those of that agent,
with ``run_id`` those of that task. ``infer: false`` stores a note as it is, without a model.
"""

import os
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class Team:
    """The shared memory of one team."""

    gateway: httpx.Client
    name: str

    def note(self, text: str, **scope: str) -> None:
        """Keep a note of the team, or of the ``agent_id`` and ``run_id`` given."""
        message = {"role": "user", "content": text}
        self._post(
            "/v1/memory/add", {"messages": [message], "user_id": self.name, "infer": False, "sync": True, **scope}
        )

    def recall(self, question: str, **scope: str) -> list[str]:
        """Return the notes of that scope that fit the question, best first."""
        found = self._post("/v1/memory/search", {"query": question, "user_id": self.name, **scope})
        return [found_memory["memory"] for found_memory in found["data"]]

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = self.gateway.post(path, json=body)
        response.raise_for_status()
        return response.json()


def main() -> None:
    """Show who sees which note."""
    headers = {"Authorization": f"Bearer {key}"} if (key := os.environ.get("MEMLOOP_API_KEY")) else {}
    url = os.environ.get("MEMLOOP_URL", "http://127.0.0.1:7800")
    with httpx.Client(base_url=url, headers=headers, timeout=60) as gateway:
        team = Team(gateway, "team-checkout")
        team.note("Deploys stop on Fridays at noon.")
        team.note("The staging database is called heron.", agent_id="deployer")
        team.note("Rollback of build 311 is under way.", agent_id="deployer", run_id="incident-8")
        print("the team:", team.recall("when do deploys stop?"))
        print("the deployer:", team.recall("staging database", agent_id="deployer"))
        print("its run:", team.recall("rollback", agent_id="deployer", run_id="incident-8"))


if __name__ == "__main__":
    main()
