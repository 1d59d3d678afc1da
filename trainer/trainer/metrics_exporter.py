"""Serves a training run's figures to Prometheus: ``python -m trainer.metrics_exporter FILE [--port 7805]``.

FILE is the output of verl's ``file`` logger, a JSON line for each step (``trainer.logger=[console,file]``,
``VERL_FILE_LOGGER_PATH=FILE``). Every figure is a sample of ``trainer_value`` with verl's name as a label, from the
newest step that has it. The file may be missing at first and may be truncated later.
"""

import argparse
import math
import threading
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel, ConfigDict, ValidationError

PORT = 7805


class _Step(BaseModel):
    """A line of the log."""

    model_config = ConfigDict(strict=True)

    step: float
    data: dict[str, object]


class RunLog(Collector):
    """The current content of a run's file: each scrape reads on from the end of the last one."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read_to = 0
        self._written_at = math.nan
        self._step = math.nan
        self._values: dict[str, float] = {}
        self._lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """Yield the newest step, its time, and its figures."""
        with self._lock:
            self._read_on()
            yield GaugeMetricFamily("trainer_step", "Newest step of the run", value=self._step)
            yield GaugeMetricFamily(
                "trainer_logged_timestamp_seconds", "When that step was logged", value=self._written_at
            )
            values = GaugeMetricFamily("trainer_value", "A figure of the newest step, by verl's name", labels=["name"])
            for name, value in self._values.items():
                values.add_metric([name], value)
            yield values

    def _read_on(self) -> None:
        try:
            state = self._file.stat()
        except OSError:
            return
        if state.st_size < self._read_to:
            self._read_to, self._values = 0, {}
        with self._file.open("rb") as lines:
            lines.seek(self._read_to)
            for line in lines:
                if not line.endswith(b"\n"):
                    return
                self._read_to += len(line)
                self._take(line)
        self._written_at = state.st_mtime

    def _take(self, line: bytes) -> None:
        """Read one step. Other lines are ignored."""
        try:
            logged = _Step.model_validate_json(line)
        except ValidationError:
            return
        self._step = logged.step
        self._values.update({name: _number(value) for name, value in logged.data.items() if _is_figure(value)})


def _is_figure(value: object) -> bool:
    """Return whether the value is a number, or null, which the logger writes for non-finite values."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer.metrics_exporter", description="A run's figures for Prometheus."
    )
    parser.add_argument("file", type=Path, help="the output of verl's file logger")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--host", default="127.0.0.1")
    chosen = parser.parse_args()
    registry = CollectorRegistry()
    registry.register(RunLog(chosen.file))
    _, thread = start_http_server(chosen.port, chosen.host, registry)
    thread.join()


if __name__ == "__main__":
    main()
