"""All that a person can set about the launcher and its engine, from the environment (prefix ``MEMLOOP_``).

A variable that starts with ``MEMLOOP_ENGINE_`` and is not a field here is a typing error, and refuses the start.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from memloop.service import ServiceSettings

_PREFIX = "MEMLOOP_ENGINE_"


class LauncherSettings(ServiceSettings):
    """What to serve, on which engine, and where. ``engine_*`` values that are None come from the model's row."""

    port: int = 7802
    model: str = "memloop-tiny"
    model_path: Path | None = None
    models_file: Path | None = None
    profile: str | None = None

    engine: Literal["auto", "vllm", "sglang", "vllm-cpu"] = "auto"
    engine_python: str = sys.executable
    engine_host: str = "127.0.0.1"
    engine_port: int = Field(default=7803, ge=1, le=65_535)
    engine_api_key: SecretStr | None = None
    engine_url: str | None = None
    engine_served_name: str | None = None
    engine_start_timeout_s: float = Field(default=900.0, gt=0)
    engine_stop_timeout_s: float = Field(default=20.0, gt=0)

    engine_max_model_len: int | None = Field(default=None, gt=0)
    engine_max_num_seqs: int | None = Field(default=None, gt=0)
    engine_dtype: str | None = None
    engine_kv_cache_memory_bytes: int | None = Field(default=None, gt=0)
    engine_kv_cache_dtype: str | None = None
    engine_memory_fraction: float | None = Field(default=None, gt=0.0, le=1.0)
    engine_tensor_parallel_size: int = Field(default=1, ge=1)
    engine_quantization: str | None = None
    engine_enforce_eager: bool = False
    engine_prefix_caching: bool = True
    engine_tool_call_parser: str | None = None
    engine_reasoning_parser: str | None = None
    engine_strict_tools: bool = True
    engine_chat_template: Path | None = None
    engine_load_format: str | None = None
    engine_revision: str | None = None
    engine_seed: int = Field(default=0, ge=0)
    engine_trust_remote_code: bool = False


def unknown_engine_variables(names: Iterable[str]) -> list[str]:
    """The environment variables that look like engine settings and are none."""
    known = {f"MEMLOOP_{field.upper()}" for field in LauncherSettings.model_fields}
    return sorted(name for name in names if name.upper().startswith(_PREFIX) and name.upper() not in known)
