"""Reads a model's real window from its endpoint, in the shapes of the public API documents.

vLLM, SGLang, OpenRouter and others list it with the model; llama.cpp, LM Studio and Ollama have a path of their own.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from memloop.wire.base import object_in, objects_in
from memloop.wire.chat import Json

_LISTED: Final = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length")
"""The fields of a listed model, the first one that is there: vLLM's and SGLang's, LM Studio's of a loaded model,
OpenRouter's, Groq's, LM Studio's and Mistral's of any model."""
_ASSUMED: Final = 4096
"""The window that Ollama and LM Studio give a model by default, on most machines."""
_PARAMETER: Final = re.compile(r"^num_ctx\s+(\d+)\s*$", re.MULTILINE)
_PLAUSIBLE: Final = range(256, 1 << 28)
Read: TypeAlias = Callable[[str], Awaitable[Json]]
"""Reads the JSON object at a path. Raises MemloopError."""


class Ask(Protocol):
    """Calls a path beside the base path: a POST with a body, else a GET."""

    async def __call__(self, path: str, body: Json | None = None) -> Json:
        """Return the answer. Raises MemloopError."""
        ...


@dataclass(frozen=True, slots=True)
class ServedWindow:
    """A model's window in tokens, its prompt and reply together; None where the endpoint does not state it.

    ``source`` is the path that states it. ``assumed``: the endpoint states it only once the model is loaded. ``advice``
    is the way to a larger one.
    """

    tokens: int | None
    source: str = ""
    assumed: bool = False
    advice: str = ""


async def listed_window(model: str, below: Read) -> ServedWindow:
    """Return the window that stands in the list of models. Raises MemloopError without a list."""
    row = _row(await below("models"), model)
    listed = next((tokens for field in _LISTED if (tokens := _tokens(row.get(field))) is not None), None)
    its = _tokens(object_in(row.get("top_provider")).get("context_length"))
    return ServedWindow(min((tokens for tokens in (listed, its) if tokens is not None), default=None), "/models")


async def props_window(model: str, beside: Ask) -> ServedWindow:
    """Return the window of a slot of llama.cpp's server, which has one model. Raises MemloopError.

    https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    """
    del model
    slot = object_in((await beside("props")).get("default_generation_settings"))
    return ServedWindow(_tokens(slot.get("n_ctx")), "/props")


async def lmstudio_window(model: str, beside: Ask) -> ServedWindow:
    """Return the window with which LM Studio loaded the model. Raises MemloopError.

    https://lmstudio.ai/docs/developer/rest/endpoints: a model that is not loaded states its maximum alone.
    """
    path = "api/v0/models"
    row = _row(await beside(path), model)
    if (loaded := _tokens(row.get("loaded_context_length"))) is not None:
        return ServedWindow(loaded, f"/{path}")
    most = _tokens(row.get("max_context_length"))
    return ServedWindow(None if most is None else min(most, _ASSUMED), f"/{path}", assumed=True)


async def ollama_window(model: str, beside: Ask) -> ServedWindow:
    """Return the window that Ollama gives the model when a request names none, as on its OpenAI route. Raises
    MemloopError.

    https://docs.ollama.com/api and https://docs.ollama.com/context-length: the model's own ``num_ctx`` decides, else
    the server's setting, which shows only while the model is loaded.
    """
    shown = await beside("api/show", {"model": model})
    fields = object_in(shown.get("model_info"))
    trained = next((_tokens(value) for name, value in fields.items() if name.endswith(".context_length")), None)
    most = trained or _PLAUSIBLE.stop
    advice = (
        f"Ollama cuts longer prompts without an error; it gives {model} more with OLLAMA_CONTEXT_LENGTH=8192 ollama "
        f"serve, or with PARAMETER num_ctx 8192 in the model's Modelfile"
    )
    if isinstance(parameters := shown.get("parameters"), str) and (found := _PARAMETER.search(parameters)):
        return ServedWindow(min(int(found[1]), most), "/api/show", advice=advice)
    running = _row(await beside("api/ps"), model, of="models")
    if (loaded := _tokens(running.get("context_length"))) is not None:
        return ServedWindow(loaded, "/api/ps", advice=advice)
    return ServedWindow(min(_ASSUMED, most), "/api/show", assumed=True, advice=advice)


def _row(answer: Json, model: str, *, of: str = "data") -> Json:
    """Return the model's row of a list, or an empty one. Ollama lists ``qwen3`` as ``qwen3:latest``."""
    for row in objects_in(answer.get(of)):
        if any(row.get(name) in (model, f"{model}:latest") for name in ("id", "model", "name")):
            return row
    return {}


def _tokens(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value in _PLAUSIBLE else None
