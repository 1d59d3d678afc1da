"""When `memloop up` makes memloop-small for itself. With the real wheels: tests/install."""

import io

import pytest
from rich.console import Console

from memloop_cli.stack.small_model import with_small_model


@pytest.mark.parametrize(
    "asked",
    [
        {"MEMLOOP_ENGINE_URL": "http://e.example/v1"},
        {"MEMLOOP_MODELS": "/etc/models.toml"},
        {"MEMLOOP_MODEL": "Qwen3-4B"},
        {"MEMLOOP_MODEL_PATH": "/models/mine"},
        {"MEMLOOP_MODELS_FILE": "/etc/rows.toml"},
        {},
    ],
    ids=["an endpoint", "a models file", "another model", "a folder", "other rows", "set-up made it"],
)
async def test_nothing_is_made_where_another_model_serves(asked: dict[str, str]) -> None:
    printed = io.StringIO()
    assert await with_small_model(asked, Console(file=printed)) == asked
    assert printed.getvalue() == ""
