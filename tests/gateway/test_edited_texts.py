"""An old text that is added again, by any of the interfaces, leaves a memory that was edited since as it is."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.test_speakers import IGNORE, answering, send
from tests.gateway.whole import Whole, whole

_TEA: Final = [{"role": "user", "content": "I like tea"}]
Add: TypeAlias = tuple[str, dict[str, Any], Callable[[Any], str]]
"""A path, a body, and how the memory's id is read from the answer."""
_ADDS: Final[dict[str, Add]] = {
    "add": (
        "/v1/memory/add",
        {"user_id": "ann", "infer": False, "messages": _TEA},
        lambda answer: answer["memories"][0]["item"]["id"],
    ),
    "batch": (
        "/v1/memory/batch",
        {"adds": [{"user_id": "ann", "messages": _TEA}]},
        lambda answer: answer["results"][0]["memories"][0]["item"]["id"],
    ),
    "mem0": (
        "/v3/memories/add/",
        {"user_id": "ann", "infer": False, "messages": _TEA},
        lambda answer: answer["results"][0]["id"],
    ),
}


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncGenerator[Whole]:
    """A gateway, a worker and a store, whose writer ignores everything."""
    async with whole(redis_url, tmp_path, answering(IGNORE)) as running:
        yield running


@pytest.mark.parametrize("way", _ADDS)
async def test_an_old_text_that_is_added_again_leaves_the_edit(stack: Whole, way: str) -> None:
    (path, body, id_of), gateway = _ADDS[way], stack.gateway
    headers = {"Authorization": f"Bearer {ALICE_KEY}"}
    tea = id_of((await send(stack, path, body)).json)
    change = {"memory": "I like coffee", "tags": ["drink"], "metadata": {"checked": True}}
    async with gateway.http.patch(f"{gateway.url}/v1/memory/{tea}", json=change, headers=headers) as answer:
        edited = await answer.json()

    again = id_of((await send(stack, path, body)).json)

    assert again != tea
    assert (await gateway.get(f"/v1/memory/{tea}", headers=headers)).json == edited
    history = (await gateway.get(f"/v1/memory/{tea}/history", headers=headers)).json
    assert [version["memory"] for version in history["data"]] == ["I like tea", "I like coffee"]
    page = (await gateway.get("/v1/memory?user_id=ann", headers=headers)).json
    assert {item["id"]: item["memory"] for item in page["data"]} == {tea: "I like coffee", again: "I like tea"}
