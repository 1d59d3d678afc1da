"""The workflow for n8n: its shape is one that n8n imports, and its request is one that the gateway answers."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memloop.wire.chat import ChatRequest

WORKFLOW = Path(__file__).parents[2] / "examples/frameworks/n8n.json"


@pytest.fixture
def workflow() -> Any:
    return json.loads(WORKFLOW.read_text())


def test_every_node_has_what_n8n_asks_for(workflow: Any) -> None:
    nodes = workflow["nodes"]
    for node in nodes:
        assert {"id", "name", "type", "typeVersion", "position", "parameters"} <= node.keys()
    assert len({node["id"] for node in nodes}) == len({node["name"] for node in nodes}) == len(nodes)


def test_the_connections_lead_from_the_question_to_the_answer(workflow: Any) -> None:
    names = [node["name"] for node in workflow["nodes"]]
    led = {name: found["main"][0][0]["node"] for name, found in workflow["connections"].items()}
    assert led == dict(pairwise(names))


def test_the_request_is_a_chat_with_memory(workflow: Any) -> None:
    parameters = workflow["nodes"][1]["parameters"]
    assert (parameters["method"], parameters["url"].rpartition("}}")[2]) == ("POST", "/v1/chat/completions")
    body = re.fullmatch(r"=\{\{ JSON\.stringify\((.*)\) \}\}", parameters["jsonBody"])
    assert body is not None
    filled = body[1].replace("$env.MEMLOOP_MODEL", "'m'").replace("$json.body.question", "'Hi.'")
    filled = filled.replace("$json.body.user_id", "'ada'").replace("'", '"')
    asked = ChatRequest.model_validate(json.loads(re.sub(r"([{,] ?)(\w+):", r'\1"\2":', filled)))
    assert asked.memory is not None
    assert (asked.memory.user_id, asked.messages[0].text()) == ("ada", "Hi.")
