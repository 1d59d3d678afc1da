"""Texts to dense and sparse vectors."""

import sys

# Where pip installs this package, OpenVINO reports each import to a web service.
sys.modules["openvino_telemetry"] = None  # pyright: ignore[reportArgumentType]
