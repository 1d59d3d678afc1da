#!/usr/bin/env python3
"""Writes ``.env`` for ``docker-compose.yml`` from ``.env.example``, with fresh secrets, and prints two API keys.

    export MEMLOOP_API_KEY=$(python3 deploy/make_env.py --profile cpu)

Needs Python 3.10 or newer and nothing else. The key on standard output is an application's. The operator's, which makes
and revokes keys and does nothing else, is printed beside the messages. Both are printed this once: ``.env`` holds their
SHA-256 alone. An ``.env`` that is there already is not touched (status 1): it holds the passwords of its data.
"""

import argparse
import hashlib
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

ROOT = Path(__file__).resolve().parents[1]
MARK = "<secret>"
_APP_SCOPES = "chat+memory:read+memory:write+long-read"
_SCHEMES = ("http://", "https://", "http+srv://", "https+srv://")
_GPU_MEMORY = "32g"
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104 - refused as an address, not listened on
_HOST = "host.docker.internal"
"""What docker-compose.yml calls this machine."""


def main() -> int:
    """Write the file; status 0, 1 when there is one, 2 on wrong arguments."""
    arguments = _arguments()
    if arguments.profile == "external" and not arguments.engine_url.startswith(_SCHEMES):
        print("make_env: the profile external needs --engine-url https://…/v1, http://… or …+srv://…", file=sys.stderr)
        return 2
    if arguments.profile == "external":
        arguments.engine_url = reachable(arguments.engine_url)
    if arguments.reader and (arguments.profile != "cpu" or arguments.model):
        print("make_env: --reader goes with the profile cpu and its models; else write a models file", file=sys.stderr)
        return 2
    key, operator_key = (f"ml_{secrets.token_urlsafe(32)}" for _ in range(2))
    text = filled((ROOT / ".env.example").read_text("utf-8"), _values(arguments, key, operator_key))
    try:
        _write(arguments.out, text)
    except FileExistsError:
        print(f"make_env: {arguments.out} is there already; it is left as it is", file=sys.stderr)
        return 1
    print(f"make_env: wrote {arguments.out}; the operator's key, for /v1/admin alone: {operator_key}", file=sys.stderr)
    print("make_env: the application's key; both are shown this once:", file=sys.stderr)
    print(key)
    return 0


def reachable(url: str) -> str:
    """The URL as a container reaches it: this machine's loopback is another one there."""
    parts = urlsplit(url)
    if parts.hostname not in _LOOPBACK:
        return url
    place = f"{_HOST}:{parts.port}" if parts.port else _HOST
    made = urlunsplit(parts._replace(netloc=place))
    print(f"make_env: containers reach this machine at {made}; the engine must listen beyond loopback", file=sys.stderr)
    return made


def filled(example: str, values: Mapping[str, str]) -> str:
    """The example with these values, and a fresh secret wherever it asks for one and none is given."""
    return "".join(_line(line, values) for line in example.splitlines(keepends=True))


def _line(line: str, values: Mapping[str, str]) -> str:
    name, found, value = line.rstrip("\n").partition("=")
    if not found or line.startswith("#"):
        return line
    if name in values:
        return f"{name}={_quoted(values[name])}\n"
    return f"{name}={secrets.token_hex(32)}\n" if value == MARK else line


def _quoted(value: str) -> str:
    """The value as Compose reads it unchanged: without quotes it would expand ``$NAME`` and cut a comment off."""
    if not set(value) & set("$#\"\\'"):
        return value
    if "'" in value or "\n" in value:
        raise SystemExit("make_env: a value with a single quote or a line break cannot be written to .env")
    return f"'{value}'"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make_env.py", description="Write .env with fresh secrets; print the API key."
    )
    parser.add_argument("--profile", choices=("cpu", "gpu", "external"), default="cpu")
    parser.add_argument("--engine-url", default="", help="external: the endpoint's OpenAI base URL")
    parser.add_argument("--engine-api-key", default="", help="external: its key")
    parser.add_argument("--model", default="", help="the model's name")
    parser.add_argument(
        "--reader", action="store_true", help="cpu: one model writes memories and chats, a second one reads documents"
    )
    parser.add_argument("--tenant", default="local", help="whose key it is")
    parser.add_argument("--out", type=Path, default=ROOT / ".env")
    return parser.parse_args()


def _entry(tenant: str, key: str, scopes: str) -> str:
    return f"{tenant}:{hashlib.sha256(key.encode()).hexdigest()} scopes={scopes}"


def _values(arguments: argparse.Namespace, key: str, operator_key: str) -> dict[str, str]:
    entries = (_entry(arguments.tenant, key, _APP_SCOPES), _entry(arguments.tenant, operator_key, "admin"))
    values = {
        "COMPOSE_PROFILES": arguments.profile,
        "MEMLOOP_API_KEYS": ",".join(entries),
        "MEMLOOP_MODEL": arguments.model,
    }
    if arguments.profile == "external":
        values["MEMLOOP_ENGINE_URL"] = arguments.engine_url
        values["MEMLOOP_ENGINE_API_KEY"] = arguments.engine_api_key
        values["MEMLOOP_INFERENCE_URL"] = ""
    if arguments.reader:
        values["COMPOSE_PROFILES"] += ",reader"
        values["MEMLOOP_MODEL"] = "memloop-tiny-writer"
        values["MEMLOOP_MODELS"] = "/etc/memloop/models/writer-reader.toml"
    if arguments.profile == "gpu":
        values["MEMLOOP_INFERENCE_MEMORY"] = _GPU_MEMORY
    return values


def _write(path: Path, text: str) -> None:
    """Readable by its owner alone. Raises FileExistsError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())
