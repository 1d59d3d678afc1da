"""A process that is started with wrong settings says what is wrong in a sentence, and never shows a value."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.settings import GatewaySettings, WorkerSettings
from inference.settings import LauncherSettings
from memloop_service import ServiceSettings
from memory_store.settings import Settings
from tests.fakes.processes import PATIENCE_S, clean_environment

SETTINGS_PAGE = Path(__file__).parents[2] / "docs/operations/settings.md"
PROCESSES: list[type[ServiceSettings]] = [GatewaySettings, WorkerSettings, Settings, LauncherSettings]
SECRET = "hunter2hunter2"
MODULES = ["gateway.main", "gateway.worker", "memory_store.main", "inference.main"]


def last_words(module: str, **settings: str) -> str:
    """What a process prints that does not start."""
    ended = subprocess.run(
        [sys.executable, "-m", module],
        env=clean_environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode != 0
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("module", MODULES)
def test_a_wrong_value_is_a_sentence_without_the_value(module: str) -> None:
    said = last_words(module, MEMLOOP_PORT=SECRET)

    assert "MEMLOOP_PORT: Input should be a valid integer" in said
    assert "Traceback" not in said
    assert SECRET not in said


@pytest.mark.parametrize("name", ["WEBHOOK_SECRET", "STOP_GRACE_S", "ENGINE_URL"])
def test_a_wrong_secret_is_not_printed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"MEMLOOP_{name}", SECRET)
    with pytest.raises(SystemExit) as ended:
        GatewaySettings.read()

    assert f"MEMLOOP_{name}" in str(ended.value)
    assert SECRET not in str(ended.value)


def test_no_setting_of_another_process_looks_misspelt() -> None:
    published = set(re.findall(r"MEMLOOP_[A-Z0-9_]+", SETTINGS_PAGE.read_text("utf-8")))

    assert len(published) > 150
    assert {process.__name__: process.misspelt(published) for process in PROCESSES} == {
        process.__name__: [] for process in PROCESSES
    }


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("MEMLOOP_TENANT_FILE", "MEMLOOP_TENANT_FILES"),
        ("MEMLOOP_REDIS_URI", "MEMLOOP_REDIS_URL"),
        ("MEMLOOP_STOPGRACE_S", "MEMLOOP_STOP_GRACE_S"),
    ],
)
def test_a_name_that_is_almost_a_setting_is_named(misspelt: str, meant: str) -> None:
    assert GatewaySettings.misspelt([misspelt, "MEMLOOP_SOMETHING_OF_OTHERS", "HOME"]) == [(misspelt, meant)]
