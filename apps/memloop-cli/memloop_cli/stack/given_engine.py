"""An engine that the user names: its settings for the stack, and whether it answers, before anything starts."""

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memloop.wire.chat import Json
from memloop.wire.errors import EngineError, MemloopError, Timeout, Unavailable
from memloop_cli.errors import BadInput, CliError
from memloop_cli.tls import connects_by
from memloop_clients import Timeouts, balanced_url, urls_in
from memloop_clients.endpoints import DIALECT_NAMES
from memloop_clients.engine import EngineClient, read_completion

ENGINE_URL: Final = "MEMLOOP_ENGINE_URL"
MODEL: Final = "MEMLOOP_MODEL"
ENGINE_API_KEY: Final = "MEMLOOP_ENGINE_API_KEY"
_DIALECT: Final = "MEMLOOP_ENGINE_DIALECT"
_TIMEOUTS: Final = Timeouts(connect_s=5.0, read_s=120.0, total_s=120.0)
_KEY_REFUSED: Final = frozenset({401, 403})
_NOT_FOUND: Final = 404
_TOO_MANY_REQUESTS: Final = 429
_MOST_NAMED: Final = 8


@dataclass(frozen=True, slots=True)
class GivenEngine:
    """The options of ``memloop up``; None leaves the environment's value."""

    url: str | None = None
    model: str | None = None
    api_key: str | None = None

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with these settings over its own."""
        given = {ENGINE_URL: self.url, MODEL: self.model, ENGINE_API_KEY: self.api_key}
        return {**own, **{name: value for name, value in given.items() if value}}


async def check_engine(environment: Mapping[str, str]) -> None:
    """Ask the given engine for one short reply. Raises CliError for a wrong URL, a refused key, an unknown model.

    An engine that answers 429 has accepted all three. Without a URL, raises CliError when no engine is installed.
    """
    urls = urls_in(environment.get(ENGINE_URL, ""))
    if not urls:
        return _check_local(environment)
    client = _client(urls[0], environment)
    try:
        listed = await _listed(client, urls[0])
        model = environment.get(MODEL) or next(iter(listed), None)
        if model is None:
            raise BadInput(
                f"{urls[0]}/models lists no models, if an engine answers there at all: name one with --model or {MODEL}"
            )
        await _ask(client, urls[0], model, listed, has_key=bool(environment.get(ENGINE_API_KEY)))
    finally:
        await client.close()


def _check_local(environment: Mapping[str, str]) -> None:
    """Raise CliError when the stack would start an engine that is not installed."""
    elsewhere = environment.get("MEMLOOP_MODELS") or environment.get("MEMLOOP_SERVE_PYTHON")
    if elsewhere or any(importlib.util.find_spec(name) for name in ("vllm", "sglang", "openvino_genai")):
        return
    raise CliError(
        "no engine is installed here: name one with --engine-url URL --model ID, get a small model and its engine by "
        "pip install 'memloop-cli[small]', or vLLM for this processor by pip install 'memloop-cli[engine-cpu]'"
    )


def _client(url: str, environment: Mapping[str, str]) -> EngineClient:
    dialect = environment.get(_DIALECT) or "auto"
    if dialect not in DIALECT_NAMES:
        raise BadInput(f"{_DIALECT} is {dialect}, and must be one of {', '.join(DIALECT_NAMES)}")
    try:
        return EngineClient(
            balanced_url(url),
            model="",
            api_key=environment.get(ENGINE_API_KEY) or None,
            timeouts=_TIMEOUTS,
            dialect=dialect,
            tls=connects_by(environment),
        )
    except ValueError as error:
        raise BadInput(f"{error} ({ENGINE_URL})") from error


async def _listed(client: EngineClient, url: str) -> list[str]:
    """Return the ids of the engine's models; empty where it has no such list."""
    try:
        answer = await client.get_json("models")
    except (Unavailable, Timeout) as error:
        raise CliError(f"no engine answers at {url}: {error.message}") from error
    except MemloopError:
        return []
    rows = answer.get("data")
    ids = [row.get("id") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [name for name in ids if isinstance(name, str)]


async def _ask(client: EngineClient, url: str, model: str, listed: Sequence[str], *, has_key: bool) -> None:
    body: Json = {"model": model, "messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 16}
    try:
        read_completion(await client.chat(body))
    except EngineError as error:
        if error.engine_status != _TOO_MANY_REQUESTS:
            raise CliError(_refusal(error, url, model, listed, has_key=has_key)) from error
    except (Unavailable, Timeout) as error:
        raise CliError(f"the engine at {url} does not answer a chat with {model}: {error.message}") from error
    except MemloopError as error:
        raise CliError(f"what answers at {url} is no OpenAI-compatible engine: {error.message}") from error


def _refusal(error: EngineError, url: str, model: str, listed: Sequence[str], *, has_key: bool) -> str:
    if error.engine_status in _KEY_REFUSED:
        way_out = f"give another one with --api-key or {ENGINE_API_KEY}"
        return f"the engine at {url} {'refuses the API key' if has_key else 'asks for an API key'}: {way_out}"
    if listed and model not in listed:
        more = " …" if len(listed) > _MOST_NAMED else ""
        return f"the engine at {url} has no model {model}; it lists {', '.join(listed[:_MOST_NAMED])}{more}"
    if error.engine_status == _NOT_FOUND and not listed:
        return f"nothing answers at {url}/chat/completions: the URL must end before that path, mostly with /v1"
    return f"the engine at {url} refuses a chat with {model}: {error.message}"
