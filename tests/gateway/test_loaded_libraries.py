"""The libraries of features that are off stay out of the process: each takes megabytes."""

import json
import subprocess
import sys

OF_FEATURES = {
    "mcp": "requests to /mcp",
    "httpx2": "requests to /mcp",
    "obstore": "storage",
    "tokenizers": "a model's tokenizer",
    "opentelemetry.exporter": "tracing",
}
BUILT = """
import json, sys
from gateway.main import build_app
from gateway.settings import GatewaySettings
build_app(GatewaySettings(engine_url="http://127.0.0.1:9/v1", redis_url="redis://127.0.0.1:9/0"))
print(json.dumps(sorted(sys.modules)))
"""


def test_a_gateway_loads_no_library_of_a_feature_that_is_off() -> None:
    answer = subprocess.run([sys.executable, "-c", BUILT], check=True, capture_output=True, env={})
    loaded = set(json.loads(answer.stdout))
    assert {library: feature for library, feature in OF_FEATURES.items() if library in loaded} == {}
