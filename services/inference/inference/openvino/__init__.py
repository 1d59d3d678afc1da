"""An engine for small models on a processor: OpenVINO GenAI behind OpenAI's chat API. It runs as a process of its own.

It needs neither torch nor a compiler, and starts in seconds: it reads GGUF weights as they are.
"""

import sys

# Where pip installs this package, OpenVINO reports each import to a web service.
sys.modules["openvino_telemetry"] = None  # pyright: ignore[reportArgumentType]
