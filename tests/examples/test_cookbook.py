"""The recipes of the cookbook, against a gateway with everything real behind it but the engine."""

import asyncio
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI

from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.documents import pdf
from tests.gateway.rig import eventually
from tests.gateway.whole import Whole


def recipe(name: str) -> Any:
    return importlib.import_module(f"examples.cookbook.{name}")


@pytest.fixture
def client(it: Whole) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {ALICE_KEY}"}
    with httpx.Client(base_url=it.gateway.url, headers=headers, timeout=120) as gateway:
        yield gateway


@pytest.mark.parametrize(
    "name", ["contract_review", "export_and_erase", "migrate_from_mem0", "research_assistant", "support_bot"]
)
def test_a_recipe_without_arguments_prints_its_usage(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [f"{name}.py"])
    with pytest.raises(SystemExit, match=rf"python examples/cookbook/{name}\.py "):
        recipe(name).main()


async def test_a_support_bot_knows_in_a_new_conversation_what_the_customer_told(it: Whole) -> None:
    bot = recipe("support_bot")
    openai = OpenAI(base_url=f"{it.gateway.url}/v1", api_key=ALICE_KEY)
    await asyncio.to_thread(bot.Conversation(openai, "m", "c17").says, "My locker code is 482.")
    later = bot.Conversation(openai, "m", "c17")
    assert await asyncio.to_thread(later.says, "What is my locker code?") == "It is 482."
    assert len(later.messages) == 3
    other = bot.Conversation(openai, "m", "c18")
    assert await asyncio.to_thread(other.says, "What is my locker code?") == "I do not know."


async def test_a_review_of_300_pages_quotes_the_passages_with_their_page_and_deletes_the_file(
    it: Whole, client: httpx.Client, tmp_path: Path
) -> None:
    contract = tmp_path / "contract.pdf"
    clauses = [f"Clause {number} of the contract concerns deliveries in week {number}." for number in range(1, 301)]
    clauses[211] = "The notice period is 482 days."
    contract.write_bytes(pdf(*clauses))
    findings = await asyncio.to_thread(
        lambda: list(recipe("contract_review").review(client, contract, ["What is the notice period?"], model="m"))
    )
    assert [(finding.question, finding.answer) for finding in findings] == [("What is the notice period?", "482 days")]
    passages = [passage for found in findings[0].support.values() for passage in found]
    assert any("p. 212" in passage and "The notice period is 482 days" in passage for passage in passages)
    assert (await asyncio.to_thread(client.get, "/v1/files")).json()["data"] == []


async def test_a_research_assistant_answers_from_what_it_read_before(
    it: Whole, client: httpx.Client, tmp_path: Path
) -> None:
    paper = tmp_path / "paper.txt"
    paper.write_text("We compare two clauses. The notice period is 482 days. Further work is needed.")
    assistant = recipe("research_assistant").Assistant(client, "m", "ada")
    assert await asyncio.to_thread(assistant.study, paper, "What is the notice period?") == "482 days"
    await eventually(lambda: asyncio.to_thread(_remembers, client, "ada"))
    assert await asyncio.to_thread(assistant.ask, "What is the notice period?") == "It is 482."
    another = recipe("research_assistant").Assistant(client, "m", "bob")
    assert await asyncio.to_thread(another.ask, "What is the notice period?") == "I do not know."


def _remembers(client: httpx.Client, user: str) -> bool:
    return bool(client.get("/v1/memory", params={"user_id": user}).json()["data"])


async def test_a_teams_notes_are_seen_by_their_scope(it: Whole, client: httpx.Client) -> None:
    def notes() -> tuple[list[str], ...]:
        team = recipe("team_memory").Team(client, "team")
        team.note("Deploys stop on Fridays.")
        team.note("The staging database is heron.", agent_id="deployer")
        return tuple(
            team.recall("staging database", **scope) for scope in ({}, {"agent_id": "deployer"}, {"agent_id": "b"})
        )

    of_team, of_deployer, of_another = await asyncio.to_thread(notes)
    assert set(of_team) == {"Deploys stop on Fridays.", "The staging database is heron."}
    assert (of_deployer, of_another) == (["The staging database is heron."], [])


async def test_an_export_has_everything_and_an_erasure_leaves_nothing(
    it: Whole, client: httpx.Client, tmp_path: Path
) -> None:
    module, target = recipe("export_and_erase"), tmp_path / "ada.jsonl"
    await asyncio.to_thread(recipe("team_memory").Team(client, "ada").note, "Ada plays the cello.")
    assert await asyncio.to_thread(module.export, client, "ada", target) >= 1
    assert "Ada plays the cello." in target.read_text()
    assert (await asyncio.to_thread(module.erase, client, "ada"))["vectors"] >= 1
    assert await asyncio.to_thread(module.export, client, "ada", target) == 0


MEM0: dict[str, Any] = {
    "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
    "memory": "Likes green tea.",
    "hash": "c8e9",
    "metadata": {"category": "taste"},
    "created_at": "2025-07-20T10:00:00-07:00",
    "updated_at": None,
    "user_id": "ann",
}


async def test_memories_of_mem0_keep_text_time_and_id_and_a_second_run_changes_nothing(
    it: Whole, client: httpx.Client
) -> None:
    migrate = recipe("migrate_from_mem0").migrate
    for _ in range(2):
        assert await asyncio.to_thread(migrate, client, [MEM0]) == []
    (kept,) = (await asyncio.to_thread(client.get, "/v1/memory", params={"user_id": "ann"})).json()["items"]
    assert (kept["memory"], kept["metadata"]["category"]) == ("Likes green tea.", "taste")
    assert kept["metadata"]["mem0_id"] == MEM0["id"]
    assert kept["valid_from"].startswith("2025-07-20T17:00:00")


def test_a_memory_of_mem0_without_a_user_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"892db2ae.* names no user_id"):
        recipe("migrate_from_mem0").add_of({**MEM0, "user_id": None})


def test_a_cut_export_is_an_error(tmp_path: Path) -> None:
    def cut(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=json.dumps({"error": {"message": "store is away"}}))

    gateway = httpx.Client(base_url="http://memloop.test", transport=httpx.MockTransport(cut))
    with pytest.raises(ValueError, match=r"not complete.*store is away"):
        recipe("export_and_erase").export(gateway, "ada", tmp_path / "ada.jsonl")
