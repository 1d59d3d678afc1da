"""The gateway's OpenAPI document, made once for all test modules: it takes a second of CPU."""

from typing import Any, Final

from gateway.main import build_app
from gateway.settings import GatewaySettings

DOCUMENT: Final[dict[str, Any]] = build_app(GatewaySettings()).openapi()
