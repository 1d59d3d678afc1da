"""Every setting of the launcher has a wrong value that is refused, by the variable's name and with the reason."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from inference.engines import EnginePlan
from inference.machine import ENGINES, Machine
from inference.plan import plan_engine
from inference.registry import MODELS_FILE, RegistryError, read_registry
from inference.settings import LauncherSettings, SettingsRefused, read_settings

GPU = Machine(has_gpu=True, installed=frozenset(ENGINES))
WRONG: dict[str, tuple[Mapping[str, str], str]] = {
    "host": (
        {"MEMLOOP_HOST": "10.0.0.1"},
        "to listen on 10.0.0.1, beyond this machine, needs a MEMLOOP_ENGINE_API_KEY",
    ),
    "port": ({"MEMLOOP_PORT": "70000"}, "MEMLOOP_PORT: Input should be less than or equal to 65535"),
    "unix_socket": ({"MEMLOOP_UNIX_SOCKET": "/nowhere/s"}, "MEMLOOP_UNIX_SOCKET: there is no folder /nowhere"),
    "metrics_port": (
        {"MEMLOOP_METRICS_PORT": "7802"},
        "Value error, MEMLOOP_METRICS_PORT must differ from MEMLOOP_PORT",
    ),
    "log_level": ({"MEMLOOP_LOG_LEVEL": "loud"}, "MEMLOOP_LOG_LEVEL: Input should be"),
    "max_body_bytes": ({"MEMLOOP_MAX_BODY_BYTES": "0"}, "MEMLOOP_MAX_BODY_BYTES: Input should be greater than 0"),
    "body_timeout_s": ({"MEMLOOP_BODY_TIMEOUT_S": "0"}, "MEMLOOP_BODY_TIMEOUT_S: Input should be greater than 0"),
    "body_bytes_per_s": (
        {"MEMLOOP_BODY_BYTES_PER_S": "0"},
        "MEMLOOP_BODY_BYTES_PER_S: Input should be greater than or equal to 1",
    ),
    "head_timeout_s": ({"MEMLOOP_HEAD_TIMEOUT_S": "0"}, "MEMLOOP_HEAD_TIMEOUT_S: Input should be greater than 0"),
    "max_connections": (
        {"MEMLOOP_MAX_CONNECTIONS": "0"},
        "MEMLOOP_MAX_CONNECTIONS: Input should be greater than or equal to 1",
    ),
    "write_timeout_s": ({"MEMLOOP_WRITE_TIMEOUT_S": "0"}, "MEMLOOP_WRITE_TIMEOUT_S: Input should be greater than 0"),
    "drain_s": ({"MEMLOOP_DRAIN_S": "-1"}, "MEMLOOP_DRAIN_S: Input should be greater than or equal to 0"),
    "stop_grace_s": ({"MEMLOOP_STOP_GRACE_S": "0"}, "MEMLOOP_STOP_GRACE_S: Input should be greater than or equal to 1"),
    "tls_cert": ({"MEMLOOP_TLS_CERT": "/no.crt"}, "MEMLOOP_TLS_CERT: there is no file /no.crt"),
    "tls_key": ({"MEMLOOP_TLS_KEY": "/no.key"}, "MEMLOOP_TLS_KEY and MEMLOOP_TLS_CLIENT_CA need MEMLOOP_TLS_CERT"),
    "tls_client_ca": (
        {"MEMLOOP_TLS_CERT": "/no.crt", "MEMLOOP_TLS_CLIENT_CA": "/no.ca"},
        "MEMLOOP_TLS_CLIENT_CA: there is no file /no.ca",
    ),
    "connect_ca": ({"MEMLOOP_CONNECT_CA": "/no.ca"}, "MEMLOOP_CONNECT_CA: there is no file /no.ca"),
    "connect_cert": ({"MEMLOOP_CONNECT_CERT": "/no.crt"}, "MEMLOOP_CONNECT_CERT: there is no file /no.crt"),
    "connect_key": ({"MEMLOOP_CONNECT_KEY": "/no.key"}, "MEMLOOP_CONNECT_KEY needs MEMLOOP_CONNECT_CERT"),
    "model": ({"MEMLOOP_MODEL": "nope"}, "MEMLOOP_MODEL=nope is neither a folder nor a hub id nor one of"),
    "model_path": ({"MEMLOOP_MODEL_PATH": "/nowhere"}, "/nowhere is not a checkpoint"),
    "models_file": ({"MEMLOOP_MODELS_FILE": "/nowhere.toml"}, "/nowhere.toml: "),
    "profile": ({"MEMLOOP_PROFILE": "nowhere"}, "MEMLOOP_PROFILE: no prompt profile at nowhere"),
    "engine": (
        {"MEMLOOP_ENGINE": "tgi"},
        "MEMLOOP_ENGINE: Input should be 'auto', 'vllm', 'sglang', 'vllm-cpu' or 'openvino'",
    ),
    "serve_python": ({"MEMLOOP_SERVE_PYTHON": "/no/python"}, "MEMLOOP_SERVE_PYTHON: there is no program /no/python"),
    "engine_host": ({"MEMLOOP_ENGINE_HOST": "0.0.0.0"}, "to listen on 0.0.0.0, beyond this machine"),
    "engine_port": ({"MEMLOOP_ENGINE_PORT": "7802"}, "MEMLOOP_PORT and MEMLOOP_ENGINE_PORT are both 7802"),
    "engine_api_key": (
        {"MEMLOOP_ENGINE_API_KEY": "two words"},
        "MEMLOOP_ENGINE_API_KEY: Value error, a key must not contain blanks",
    ),
    "engine_url": ({"MEMLOOP_ENGINE_URL": "http://e/v1"}, "MEMLOOP_ENGINE_URL names a running engine"),
    "serve_media_domains": (
        {"MEMLOOP_SERVE_MEDIA_DOMAINS": "https://images.example.com"},
        "MEMLOOP_SERVE_MEDIA_DOMAINS: Value error, needs host names alone",
    ),
    "serve_name": ({"MEMLOOP_SERVE_NAME": "my model"}, "MEMLOOP_SERVE_NAME: String should match pattern"),
    "serve_start_timeout_s": (
        {"MEMLOOP_SERVE_START_TIMEOUT_S": "0"},
        "START_TIMEOUT_S: Input should be greater than 0",
    ),
    "serve_stop_timeout_s": (
        {"MEMLOOP_SERVE_STOP_TIMEOUT_S": "soon"},
        "STOP_TIMEOUT_S: Input should be a valid number",
    ),
    "serve_stuck_after_s": (
        {"MEMLOOP_SERVE_STUCK_AFTER_S": "-1"},
        "STUCK_AFTER_S: Input should be greater than or equal to 0",
    ),
    "serve_max_model_len": (
        {"MEMLOOP_SERVE_MAX_MODEL_LEN": "512"},
        "tokens, and the window has 512",
    ),
    "serve_yarn_factor": (
        {"MEMLOOP_SERVE_YARN_FACTOR": "1"},
        "MEMLOOP_SERVE_YARN_FACTOR: Input should be greater than 1",
    ),
    "serve_max_num_seqs": (
        {"MEMLOOP_SERVE_MAX_NUM_SEQS": "many"},
        "MEMLOOP_SERVE_MAX_NUM_SEQS: Input should be a valid",
    ),
    "serve_dtype": ({"MEMLOOP_SERVE_DTYPE": "int3"}, "MEMLOOP_SERVE_DTYPE: Input should be 'auto', 'bfloat16'"),
    "serve_kv_cache_memory_bytes": (
        {"MEMLOOP_SERVE_KV_CACHE_MEMORY_BYTES": "1", "MEMLOOP_SERVE_MEMORY_FRACTION": "0.5"},
        "MEMLOOP_SERVE_KV_CACHE_MEMORY_BYTES and MEMLOOP_SERVE_MEMORY_FRACTION exclude each other",
    ),
    "serve_kv_cache_dtype": ({"MEMLOOP_SERVE_KV_CACHE_DTYPE": "int8"}, "MEMLOOP_SERVE_KV_CACHE_DTYPE: Input should be"),
    "serve_memory_fraction": ({"MEMLOOP_SERVE_MEMORY_FRACTION": "1.5"}, "FRACTION: Input should be less than or equal"),
    "serve_tensor_parallel_size": (
        {"MEMLOOP_SERVE_TENSOR_PARALLEL_SIZE": "2", "MEMLOOP_ENGINE": "vllm-cpu"},
        "MEMLOOP_SERVE_TENSOR_PARALLEL_SIZE splits a model over GPUs",
    ),
    "serve_data_parallel_size": (
        {"MEMLOOP_SERVE_DATA_PARALLEL_SIZE": "2", "MEMLOOP_ENGINE": "vllm-cpu"},
        "MEMLOOP_SERVE_DATA_PARALLEL_SIZE copies a model to more GPUs",
    ),
    "serve_prefill_chunk_tokens": (
        {"MEMLOOP_SERVE_PREFILL_CHUNK_TOKENS": "32", "MEMLOOP_SERVE_MAX_NUM_SEQS": "64"},
        "MEMLOOP_SERVE_PREFILL_CHUNK_TOKENS=32 leaves no token for each of 64 sequences",
    ),
    "serve_quantization": (
        {"MEMLOOP_SERVE_QUANTIZATION": "fp8", "MEMLOOP_ENGINE": "vllm-cpu"},
        "MEMLOOP_SERVE_QUANTIZATION needs a GPU's kernels",
    ),
    "serve_speculation": (
        {"MEMLOOP_SERVE_SPECULATION": "medusa"},
        "MEMLOOP_SERVE_SPECULATION: Input should be 'ngram'",
    ),
    "serve_speculation_tokens": (
        {"MEMLOOP_SERVE_SPECULATION_TOKENS": "4"},
        "MEMLOOP_SERVE_SPECULATION_TOKENS is set, but speculation is off",
    ),
    "serve_lora": ({"MEMLOOP_SERVE_LORA": "mine"}, "MEMLOOP_SERVE_LORA takes name=folder, not 'mine'"),
    "serve_generation_defaults": (
        {"MEMLOOP_SERVE_GENERATION_DEFAULTS": "mine"},
        "GENERATION_DEFAULTS: Input should be 'engine' or 'checkpoint'",
    ),
    "serve_enforce_eager": ({"MEMLOOP_SERVE_ENFORCE_EAGER": "maybe"}, "EAGER: Input should be a valid boolean"),
    "serve_prefix_caching": ({"MEMLOOP_SERVE_PREFIX_CACHING": "maybe"}, "CACHING: Input should be a valid boolean"),
    "serve_tool_call_parser": ({"MEMLOOP_SERVE_TOOL_CALL_PARSER": "hermit"}, "vLLM has no parser for hermit, only for"),
    "serve_reasoning_parser": ({"MEMLOOP_SERVE_REASONING_PARSER": "qwen9"}, "vLLM has no parser for qwen9, only for"),
    "serve_strict_tools": ({"MEMLOOP_SERVE_STRICT_TOOLS": "maybe"}, "TOOLS: Input should be a valid boolean"),
    "serve_chat_template": ({"MEMLOOP_SERVE_CHAT_TEMPLATE": "/no.jinja"}, "CHAT_TEMPLATE: there is no file /no.jinja"),
    "serve_load_format": ({"MEMLOOP_SERVE_LOAD_FORMAT": "zip"}, "MEMLOOP_SERVE_LOAD_FORMAT: Input should be 'auto'"),
    "serve_revision": (
        {"MEMLOOP_SERVE_REVISION": "v2", "MEMLOOP_MODEL": "memloop-tiny", "MEMLOOP_PROFILE": "tiny"},
        "MEMLOOP_SERVE_REVISION chooses among versions on a hub, but the model is a folder",
    ),
    "serve_seed": ({"MEMLOOP_SERVE_SEED": "-1"}, "MEMLOOP_SERVE_SEED: Input should be greater than or equal to 0"),
    "serve_extra_args": (
        {"MEMLOOP_SERVE_EXTRA_ARGS": "--enable-expert-parallel --port=1"},
        "MEMLOOP_SERVE_EXTRA_ARGS: other settings decide --port",
    ),
    "serve_trust_remote_code": ({"MEMLOOP_SERVE_TRUST_REMOTE_CODE": "maybe"}, "CODE: Input should be a valid boolean"),
}


def refusal() -> str:
    """What the launcher says to the environment as it is; it must refuse."""
    with pytest.raises((SettingsRefused, RegistryError)) as refused:
        planned()
    return str(refused.value)


def planned() -> EnginePlan:
    """The plan that the environment asks for."""
    settings = read_settings([])
    return plan_engine(settings, read_registry(settings.models_file or MODELS_FILE), GPU)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_refused_with_the_reason(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables, reason = WRONG[name]
    for variable, value in {"MEMLOOP_MODEL": "Qwen/Qwen3-4B", **variables}.items():
        monkeypatch.setenv(variable, value)
    assert reason in refusal()


def test_every_setting_has_its_wrong_value_here() -> None:
    assert set(WRONG) == set(LauncherSettings.model_fields)


def test_an_adapter_must_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLOOP_MODEL", "Qwen/Qwen3-4B")
    monkeypatch.setenv("MEMLOOP_SERVE_LORA", f"mine={tmp_path},mine={tmp_path}")
    told = refusal()
    assert f"{tmp_path} is not an adapter" in told
    assert "two models would be served as mine" in told
