"""Prints the gateway's OpenAPI document, from which the console's types are generated."""

import sys

import orjson

from gateway.main import build_app
from gateway.settings import GatewaySettings

sys.stdout.buffer.write(orjson.dumps(build_app(GatewaySettings()).openapi(), option=orjson.OPT_INDENT_2))
