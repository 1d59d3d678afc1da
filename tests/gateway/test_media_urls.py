"""A chat names pictures by URL: the engine never opens a file of its own machine for one, whichever API was asked."""

from typing import Any

import pytest

from tests.fakes.streaming_engine import MODEL, FakeEngine
from tests.gateway.running import CHAT, Gateway

LOCAL = [
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "/etc/passwd.png",
    "ftp://h/a.png",
    " file:///a.png",
    "s3://b/a.png",
]
FETCHED = ["https://example.com/a.png", "HTTP://example.com/a.png", "data:image/png;base64,AA=="]
KINDS = ["image_url", "video_url", "audio_url"]


def part_of(kind: str, url: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": [{"type": kind, kind: url}]}]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("url", LOCAL)
@pytest.mark.parametrize("is_wrapped", [True, False])
async def test_a_chat_that_names_a_file_is_refused(
    gateway: Gateway, engine: FakeEngine, kind: str, url: str, is_wrapped: bool
) -> None:
    answer = await gateway.post(CHAT, part_of(kind, {"url": url} if is_wrapped else url))

    assert (answer.status, answer.error["param"]) == (400, f"messages[0].content[0].{kind}")
    assert engine.received == []


@pytest.mark.parametrize("url", FETCHED)
async def test_a_url_of_the_web_or_of_data_reaches_the_engine(gateway: Gateway, engine: FakeEngine, url: str) -> None:
    asked = part_of("image_url", {"url": url})
    assert (await gateway.post(CHAT, asked)).status == 200
    assert engine.last.json["messages"] == asked["messages"]


@pytest.mark.parametrize("url", LOCAL)
async def test_the_other_apis_refuse_it_too(gateway: Gateway, engine: FakeEngine, url: str) -> None:
    picture = {"type": "image", "source": {"type": "url", "url": url}}
    message = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": [picture]}]}
    response = {
        "model": MODEL,
        "input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}],
    }
    assert (await gateway.post("/v1/messages", message)).status == 400
    assert (await gateway.post("/v1/responses", response)).status == 400
    assert engine.received == []
