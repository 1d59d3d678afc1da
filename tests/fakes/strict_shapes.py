"""The error bodies of public chat endpoints, each as its own API document or its users' reports show it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal: the status, the body and the headers that matter."""

    status: int
    body: object
    headers: dict[str, str] = field(default_factory=dict[str, str])


def openai(status: int, message: str, *, param: str | None = None, code: str | None = None) -> Refused:
    """OpenAI, Azure's v1 API and DeepSeek: https://platform.openai.com/docs/guides/error-codes."""
    kind = "rate_limit_error" if status == 429 else "invalid_request_error"
    return Refused(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


def unrecognized(names: Sequence[str]) -> Refused:
    """OpenAI's words for a top-level field that it does not have."""
    plural = "s" if len(names) > 1 else ""
    return openai(400, f"Unrecognized request argument{plural} supplied: {', '.join(sorted(names))}")


def unsupported_parameter(name: str, *, instead: str | None = None) -> Refused:
    """OpenAI's words for a field that this model does not take."""
    way_out = f" Use '{instead}' instead." if instead else ""
    message = f"Unsupported parameter: '{name}' is not supported with this model.{way_out}"
    return openai(400, message, param=name, code="unsupported_parameter")


def unsupported_value(name: str, value: object) -> Refused:
    """OpenAI's words for a value that this model does not take."""
    message = f"Unsupported value: '{name}' does not support {value} with this model. Only the default (1) value is"
    return openai(400, f"{message} supported.", param=name, code="unsupported_value")


def azure(status: int, code: str, message: str) -> Refused:
    """Azure's front door: https://learn.microsoft.com/azure/ai-services/openai/reference."""
    return Refused(status, {"error": {"code": code, "message": message}})


def anthropic(status: int, message: str) -> Refused:
    """Anthropic's OpenAI surface: https://docs.anthropic.com/en/api/openai-sdk."""
    kind = "rate_limit_error" if status == 429 else "invalid_request_error"
    return Refused(status, {"error": {"code": kind, "message": message, "type": kind, "param": None}})


def anthropic_extra(names: Sequence[str]) -> Refused:
    """Anthropic's words for a field that it does not have."""
    return anthropic(400, f"{min(names)}: Extra inputs are not permitted")


def google(status: int, message: str, state: str = "INVALID_ARGUMENT") -> Refused:
    """Gemini's OpenAI surface answers errors in a list: https://ai.google.dev/gemini-api/docs/openai."""
    return Refused(status, [{"error": {"code": status, "message": message, "status": state}}])


def google_unknown(names: Sequence[str]) -> Refused:
    """Gemini's words for fields that it does not have, all of them at once."""
    lines = (f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.' for name in sorted(names))
    return google(400, "\n".join(lines))


def ollama(status: int, message: str) -> Refused:
    """Ollama: https://docs.ollama.com/api/openai-compatibility."""
    return Refused(status, {"error": {"message": message, "type": "api_error", "param": None, "code": None}})


def llama_cpp(status: int, message: str) -> Refused:
    """llama-server: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return Refused(status, {"error": {"code": status, "message": message, "type": kind}})


def lmstudio(status: int, message: str) -> Refused:
    """LM Studio's error is a text: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670."""
    return Refused(status, {"error": message})


def openrouter(status: int, message: str) -> Refused:
    """OpenRouter: https://openrouter.ai/docs/api/reference/errors-and-debugging."""
    return Refused(status, {"error": {"message": message, "code": status}})


def vllm(status: int, message: str, *, param: str | None = None) -> Refused:
    """vLLM 0.32, as observed."""
    return Refused(status, {"error": {"message": message, "type": "BadRequestError", "param": param, "code": status}})


def sglang(status: int, message: str) -> Refused:
    """SGLang's flat form: sglang/srt/entrypoints/openai/protocol.py, ``ErrorResponse``."""
    body = {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": status}
    return Refused(status, body)


def fastapi_extra(names: Sequence[str]) -> Refused:
    """A server of FastAPI that forbids unknown fields."""
    detail = [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        for name in sorted(names)
    ]
    return Refused(422, {"detail": detail})


def words_of(body: object) -> str:
    """The message of an error body, of whichever shape."""
    shown = cast(Body, body[0] if isinstance(body, list) else body)
    said = shown.get("error", shown.get("message"))
    return str(cast(Body, said)["message"] if isinstance(said, dict) else said)
