"""What other libraries log at info is for whoever debugs."""

import logging
from collections.abc import Iterator

import httpx
import pytest

from memloop_service.logs import configure_logging


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root, client = logging.getLogger(), logging.getLogger("httpx")
    before = (root.handlers[:], root.level, client.level)
    yield
    root.handlers[:], level, own = before
    root.setLevel(level)
    client.setLevel(own)


def ask() -> None:
    with httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(200))) as client:
        client.get("http://qdrant:6333/collections")


@pytest.mark.parametrize(("level", "lines"), [("info", 0), ("debug", 1)])
def test_requests_of_httpx_are_logged_at_debug_alone(
    level: str, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("memory-store", level)
    ask()
    assert capsys.readouterr().out.count("HTTP Request") == lines
