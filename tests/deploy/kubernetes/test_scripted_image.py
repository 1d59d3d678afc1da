"""What the scripted engine's image is built from, without a container engine."""

import re
from pathlib import Path

from tests.kubernetes.images import SCRIPTED, scripted_context


def test_the_context_holds_all_that_the_dockerfile_copies(tmp_path: Path) -> None:
    copied = re.findall(r"^COPY (\S+) \S+$", SCRIPTED.read_text(), re.MULTILINE)
    context = scripted_context(tmp_path)
    held = [str(path.relative_to(context)) for path in context.rglob("*") if path.is_file()]
    assert sorted(copied) == sorted(held) != []


def test_the_engine_can_be_executed(tmp_path: Path) -> None:
    assert (scripted_context(tmp_path) / "tests/kubernetes/engine/serve.py").stat().st_mode & 0o111
