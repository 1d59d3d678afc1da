"""An engine-neutral plan of what to serve, and the command line that an engine's module builds from it."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from inference.machine import EngineName

Flags = tuple[str, ...]
_NO_HOST = "none.invalid"
"""A name that never resolves (RFC 6761, section 6.4)."""
_ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared, never bound


@dataclass(frozen=True, slots=True)
class Command:
    """A command line and its environment: ``environment`` overrides the launcher's own, ``defaults`` yield to it.

    ``argv`` may hold a key.
    """

    argv: Flags
    environment: Mapping[str, str]
    secrets: frozenset[str] = frozenset()
    defaults: Mapping[str, str] = field(default_factory=dict[str, str])

    def environment_within(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the engine's process; ``own`` is the launcher's."""
        return {**self.defaults, **own, **self.environment}

    def shown(self) -> str:
        """Return the command line in shell syntax with its secrets masked."""
        return " ".join("***" if word in self.secrets else shlex.quote(word) for word in self.argv)


@dataclass(frozen=True, slots=True)
class PromptLookup:
    """Speculative decoding without a draft model: guesses the continuation of an earlier match, then verifies it.

    A memory update mostly copies the memory before it, so the guesses are right. Greedy output stays the same. vLLM
    looks for the match in the request's own prompt, SGLang in what it wrote of late. It guesses ``draft_tokens`` at a
    time, after a match of ``shortest_match`` to ``longest_match`` tokens.
    """

    draft_tokens: int = 8
    shortest_match: int = 3
    longest_match: int = 5


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter, served as a model of its own name; SGLang serves it as ``BASE:NAME`` alone."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """One engine serving one model, with every contradiction resolved.

    ``max_model_len`` counts tokens of prompt and reply, ``memory_fraction`` is of the GPU's memory (0..1; on SGLang
    for weights and cache alone),
    ``prefill_chunk_tokens`` is how much of the waiting prompts one step computes, ``cores`` are the machine's,
    ``config_override`` replaces values of the checkpoint's configuration: so ``yarn_factor`` stretches its positions.
    ``media_domains`` are the hosts from which the engine may fetch pictures that a prompt names by URL.
    ``prompts`` are the files of a profile that was imported at the start. None leaves a choice to the engine.
    """

    engine: EngineName
    python: str
    model: str
    served_name: str
    host: str
    port: int
    profile: str
    prompts: Mapping[str, str] | None = field(default=None, repr=False)
    cores: int = 1
    local: bool = True
    api_key: str | None = field(default=None, repr=False)
    max_model_len: int | None = None
    yarn_factor: float | None = None
    config_override: Mapping[str, JsonValue] | None = None
    max_num_seqs: int | None = None
    dtype: str = "auto"
    kv_cache_memory_bytes: int | None = None
    kv_cache_dtype: str | None = None
    memory_fraction: float | None = None
    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    prefill_chunk_tokens: int | None = None
    speculation: PromptLookup | None = None
    adapters: tuple[Adapter, ...] = ()
    adapter_rank: int | None = None
    quantization: str | None = None
    enforce_eager: bool = False
    prefix_caching: bool = True
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    chat_template: str | None = None
    load_format: str | None = None
    revision: str | None = None
    seed: int = 0
    trust_remote_code: bool = False
    media_domains: tuple[str, ...] = ()
    strict_tools: bool = False
    checkpoint_defaults: bool = False
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None
    extra_args: tuple[str, ...] = ()

    @property
    def listens_openly(self) -> bool:
        """Return whether the engine listens on every address of the machine."""
        return self.host in _ANY_ADDRESS

    @property
    def url(self) -> str:
        """Return the engine's address for the launcher, without ``/v1``."""
        host = "127.0.0.1" if self.listens_openly else self.host
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def scheme(self) -> str:
        """Return ``https`` for an engine with a certificate."""
        return "http" if self.tls_cert is None else "https"


def option(name: str, value: object | None) -> Flags:
    """Return ``--name value``, or nothing when the value is None."""
    return () if value is None else (name, str(value))


def switch(name: str, *, on: bool) -> Flags:
    """Return ``--name`` when on."""
    return (name,) if on else ()


def model_flags(plan: EnginePlan, *, model: str, override: str, seed: str) -> Flags:
    """Return the flags of the model, of which the engines name three differently.

    Both take an empty list of hosts, from which they may fetch media, for every host.
    """
    return (
        *option(model, plan.model),
        *option("--served-model-name", plan.served_name),
        *option("--revision", plan.revision),
        *option("--load-format", plan.load_format),
        *option("--dtype", plan.dtype),
        *option("--quantization", plan.quantization),
        *option(override, json.dumps(plan.config_override) if plan.config_override else None),
        *option("--chat-template", plan.chat_template),
        *option(seed, plan.seed),
        *switch("--trust-remote-code", on=plan.trust_remote_code),
        *("--allowed-media-domains", *(plan.media_domains or (_NO_HOST,))),
    )


def quiet_environment(plan: EnginePlan) -> dict[str, str]:
    """Disables telemetry, and hub access when the model is on disk."""
    environment = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return environment | ({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"} if plan.local else {})
