"""Importing OpenVINO tells a web service of it, where pip installed what reports. Our processes prevent that."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.processes import PATIENCE_S, clean_environment


@pytest.mark.parametrize("module", ["inference.openvino.generating", "memory_store.embedding"])
def test_openvino_reports_nothing(tmp_path: Path, module: str) -> None:
    (tmp_path / "openvino_telemetry.py").write_text("raise SystemExit('a report is under way')")
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}, openvino"],
        env=clean_environment(PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 2,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
