"""A published model is served with its own prompts, or with others on purpose."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest

from inference.engines import EnginePlan
from inference.machine import Machine
from inference.plan import card_of, plan_engine
from inference.plan_command import plan_text
from inference.profile_import.importing import import_prompts, write_profile
from inference.prompts import PromptsMissing, files_of, profile_of, prompt_warnings
from inference.registry import read_registry
from inference.settings import LauncherSettings
from tests.fakes.published_sources import CARD, CARD_OF_EXAMPLES, write_card, write_memagent
from tests.inference.launcher_process import Start

GPU = Machine(has_gpu=True, installed=frozenset({"vllm"}))
CARDS = read_registry()
WRITER = "MemReader-4B-thinking"
READER = "RL-MemoryAgent-7B"


def settings_of(model: str, **values: object) -> LauncherSettings:
    return LauncherSettings.model_validate({"model": model, **values})


def plan(settings: LauncherSettings) -> EnginePlan:
    return plan_engine(settings, CARDS, GPU)


def warnings(settings: LauncherSettings) -> list[str]:
    return prompt_warnings(card_of(settings, CARDS), profile_of(plan(settings)))


@pytest.fixture
def snapshot(checkpoint: Path) -> Path:
    """A snapshot of the memory writer, with its card."""
    (checkpoint / "config.json").write_text("{}")
    return write_card(checkpoint)


def test_the_published_rows_want_their_own_prompts() -> None:
    wanted = {name: card.prompts for name, card in CARDS.items() if card.prompts}
    assert wanted == {
        WRITER: "memreader-card",
        READER: "memagent",
        "RL-MemoryAgent-14B": "memagent",
        "MemReread-4B": "memreread",
    }


def test_a_snapshot_with_its_card_is_served_with_the_cards_prompts(snapshot: Path) -> None:
    settings = settings_of(WRITER, model_path=snapshot)
    profile = profile_of(plan(settings))
    assert profile.origin is not None
    assert (profile.origin.kind, list(profile.origin.sources)) == ("memreader-card", ["README.md"])
    assert files_of(plan(settings))["read.txt"]  # the prompts that the card does not have are inherited
    assert warnings(settings) == []


@pytest.mark.parametrize("name", [WRITER, READER, "MemReread-4B"])
def test_a_snapshot_without_prompts_is_refused_with_the_ways_out(name: str, checkpoint: Path) -> None:
    with pytest.raises(PromptsMissing) as refused:
        plan(settings_of(name, model_path=checkpoint))
    told = str(refused.value)
    assert f"profile import {CARDS[name].prompts} --from SNAPSHOT_OR_CHECKOUT --to FOLDER" in told
    assert "MEMLOOP_PROFILE=default" in told
    assert "expected this file; found none" in told


def test_a_hub_id_that_is_not_in_the_cache_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(PromptsMissing, match=r"expected README\.md in the hub and its cache; found none"):
        plan(settings_of(WRITER))


def test_a_hub_id_in_the_cache_is_served_with_its_cards_prompts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    cached = tmp_path / "models--IAAR-Shanghai--MemReader-4B-thinking"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("abc")
    write_card(cached / "blobs")
    (cached / "snapshots" / "abc").mkdir(parents=True)
    (cached / "snapshots" / "abc" / "README.md").symlink_to("../../blobs/README.md")
    profile = profile_of(plan(settings_of(WRITER)))
    assert profile.origin is not None


def test_the_hub_id_of_a_published_model_wants_its_prompts_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(PromptsMissing, match="profile import memreader-card"):
        plan(settings_of("IAAR-Shanghai/MemReader-4B-thinking"))


def test_the_default_prompts_need_the_setting_and_are_warned_of(checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text("{}")
    told = warnings(settings_of(WRITER, model_path=checkpoint, profile="default"))
    assert len(told) == 1
    assert "trained on prompts of its own, and the profile default@1" in told[0]


def test_an_imported_profile_of_another_model_is_warned_of(checkpoint: Path, tmp_path: Path) -> None:
    (checkpoint / "config.json").write_text("{}")
    write_profile(import_prompts("memagent", write_memagent(tmp_path / "checkout")), tmp_path / "profile")
    given = {"model_path": checkpoint, "profile": str(tmp_path / "profile")}
    assert warnings(settings_of(READER, **given)) == []
    assert len(warnings(settings_of(WRITER, **given))) == 1


def test_a_plan_on_paper_shows_the_model_and_the_refusal(checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text("{}")
    text = plan_text(settings_of(READER, model_path=checkpoint), CARDS, gpu_gib=80)
    assert "profile default@1" in text
    assert f"warning   the launcher would refuse to start: {READER} was trained on prompts of its own" in text
    asked = plan_text(settings_of(READER, model_path=checkpoint, profile="default"), CARDS, gpu_gib=80)
    assert "warning   the model was trained on prompts of its own" in asked


def test_the_launcher_serves_the_imported_profile(snapshot: Path, start: Start) -> None:
    launcher = start(MEMLOOP_MODEL=WRITER, MEMLOOP_MODEL_PATH=str(snapshot), MEMLOOP_PROFILE="")
    launcher.wait_until("/readyz", 200)
    served = launcher.json("/v1/profile")
    expected = files_of(plan(settings_of(WRITER, model_path=snapshot)))
    assert served["files"] == expected
    assert cast(str, served["ref"]).startswith("memreader-card@")


def test_a_card_of_several_examples_starts_the_checkpoint(checkpoint: Path, start: Start) -> None:
    (checkpoint / "config.json").write_text("{}")
    write_card(checkpoint, CARD_OF_EXAMPLES)
    launcher = start(MEMLOOP_MODEL=WRITER, MEMLOOP_MODEL_PATH=str(checkpoint), MEMLOOP_PROFILE="")
    launcher.wait_until("/readyz", 200)
    files = cast(dict[str, str], launcher.json("/v1/profile")["files"])
    assert files["memory_system.txt"].startswith("Keep notes.\n- search_memory")


def test_the_launcher_warns_of_default_prompts(snapshot: Path, start: Start) -> None:
    launcher = start(MEMLOOP_MODEL=WRITER, MEMLOOP_MODEL_PATH=str(snapshot), MEMLOOP_PROFILE="default")
    launcher.wait_until("/readyz", 200)
    launcher.process.terminate()
    status, out, err = launcher.ended()
    assert status == 0
    assert "trained on prompts of its own" in out + err


class Hub(BaseHTTPRequestHandler):
    """A model hub with one file."""

    def do_HEAD(self) -> None:
        self._head()

    def do_GET(self) -> None:
        if self._head():
            self.wfile.write(CARD.encode())

    def _head(self) -> bool:
        there = self.path == f"/IAAR-Shanghai/{WRITER}/resolve/main/README.md"
        self.send_response(200 if there else 404)
        self.send_header("Content-Length", str(len(CARD.encode())) if there else "0")
        self.send_header("ETag", '"made-up"')
        self.send_header("X-Repo-Commit", "abc")
        self.end_headers()
        return there

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_launcher_fetches_a_hub_models_card(hub: str, tmp_path: Path, start: Start) -> None:
    home = str(tmp_path / "hub")
    launcher = start(MEMLOOP_MODEL=WRITER, MEMLOOP_PROFILE="", HF_ENDPOINT=hub, HF_HUB_OFFLINE="0", HF_HOME=home)
    launcher.wait_until("/readyz", 200)
    assert cast(str, launcher.json("/v1/profile")["ref"]).startswith("memreader-card@")


def test_a_launcher_without_a_hub_is_refused(tmp_path: Path, start: Start) -> None:
    home = str(tmp_path / "hub")
    launcher = start(MEMLOOP_MODEL=WRITER, MEMLOOP_PROFILE="", HF_HUB_OFFLINE="1", HF_HOME=home)
    status, _, err = launcher.ended()
    assert status == 2
    assert "expected README.md in the hub and its cache; found none" in err
