"""Settings of the launcher and its engine, from the environment (prefix ``MEMLOOP_``).

``MEMLOOP_ENGINE...`` chooses the engine and its address, ``MEMLOOP_SERVE_...`` how it serves the model. An unknown
variable that starts with ``MEMLOOP_SERVE_`` stops the start, because it is probably misspelt.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import SettingsConfigDict

from memloop_service import ServiceSettings
from memloop_service.settings import sentences_of


class SettingsRefused(ValueError):
    """The settings contradict each other, the model or the machine; the message names the way out."""


_PREFIX = "MEMLOOP_SERVE_"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


class LauncherSettings(ServiceSettings):
    """The model, engine and addresses. A ``serve_*`` value of None is taken from the model's row."""

    model_config = SettingsConfigDict(env_ignore_empty=True)

    port: int = Field(default=7802, ge=1, le=65_535)
    model: str = "memloop-small"
    model_path: Path | None = None
    models_file: Path | None = None
    profile: str | None = None

    engine: Literal["auto", "vllm", "sglang", "vllm-cpu", "openvino"] = "auto"
    serve_python: str = sys.executable
    engine_host: str = "127.0.0.1"
    engine_port: int = Field(default=7803, ge=1, le=65_535)
    engine_api_key: SecretStr | None = None
    engine_url: str | None = None
    serve_name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$")
    serve_start_timeout_s: float = Field(default=900.0, gt=0)
    serve_stop_timeout_s: float = Field(default=20.0, gt=0)
    """Seconds that running requests get after SIGTERM, and then the engine itself."""
    serve_stuck_after_s: float = Field(default=60.0, ge=0)
    """Seconds without a token, while requests wait, before the engine is probed and, if stuck, ended; 0: never."""

    serve_max_model_len: int | None = Field(default=None, gt=0)
    serve_yarn_factor: float | None = Field(default=None, gt=1.0, le=64.0)
    """Stretches the checkpoint's positions by YaRN, for prompts longer than it was trained on."""
    serve_max_num_seqs: int | None = Field(default=None, gt=0)
    serve_dtype: Literal["auto", "bfloat16", "float16", "float32"] | None = None
    serve_kv_cache_memory_bytes: int | None = Field(default=None, gt=0)
    serve_kv_cache_dtype: Literal["auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"] | None = None
    serve_memory_fraction: float | None = Field(default=None, gt=0.0, le=1.0)
    serve_tensor_parallel_size: int = Field(default=1, ge=1)
    serve_data_parallel_size: int = Field(default=1, ge=1)
    serve_prefill_chunk_tokens: int | None = Field(default=None, ge=16)
    """Prompt tokens that one step computes beside decoding (chunked prefill)."""
    serve_quantization: (
        Literal["fp8", "awq", "awq_marlin", "gptq", "gptq_marlin", "compressed-tensors", "bitsandbytes"] | None
    ) = None
    serve_speculation: Literal["ngram", "off"] | None = None
    """Prompt-lookup speculative decoding; suits loops that copy their memory, at low load."""
    serve_speculation_tokens: int | None = Field(default=None, ge=1, le=64)
    serve_lora: str = ""
    """LoRA adapters as ``name=folder``, commas between them."""
    serve_enforce_eager: bool = False
    serve_prefix_caching: bool = True
    serve_tool_call_parser: str | None = None
    serve_reasoning_parser: str | None = None
    serve_strict_tools: bool | None = None
    serve_generation_defaults: Literal["engine", "checkpoint"] = "engine"
    """Decoding values that a request leaves out: the engine's neutral ones, or those of the checkpoint's file."""
    serve_chat_template: Path | None = None
    serve_load_format: Literal["auto", "safetensors", "pt", "dummy", "bitsandbytes", "runai_streamer"] | None = None
    serve_revision: str | None = None
    serve_seed: int = Field(default=0, ge=0)
    serve_trust_remote_code: bool = False
    serve_media_domains: str = ""
    """Hosts from which the engine may fetch pictures that a prompt names by URL, commas between them; empty: none."""
    serve_extra_args: str = ""
    """More arguments of the engine, quoted as in a shell. They come last, so that they win."""

    @field_validator("serve_media_domains")
    @classmethod
    def _hosts(cls, text: str) -> str:
        if not all(_HOST.fullmatch(host.strip()) for host in text.split(",") if host.strip()):
            raise ValueError("needs host names alone, with commas between them: images.example.com,cdn.example.com")
        return text

    @property
    def allowed_media_hosts(self) -> tuple[str, ...]:
        """The hosts of ``serve_media_domains``, as the engines compare them: in lower case."""
        return tuple(host.strip().lower() for host in self.serve_media_domains.split(",") if host.strip())

    @field_validator("engine_api_key")
    @classmethod
    def _one_word(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and key.get_secret_value().split() != [key.get_secret_value()]:
            raise ValueError("a key must not contain blanks")
        return key


def read_settings(names: Iterable[str]) -> LauncherSettings:
    """Read the settings from the environment variables ``names``. Raises SettingsRefused on unknown ones."""
    known = {f"MEMLOOP_{field.upper()}" for field in LauncherSettings.model_fields}
    unknown = sorted(name for name in names if name.upper().startswith(_PREFIX) and name.upper() not in known)
    if unknown:
        raise SettingsRefused(f"unknown settings: {', '.join(unknown)}")
    try:
        return LauncherSettings()
    except ValidationError as error:
        raise SettingsRefused("; ".join(sentences_of(error))) from None
