"""vLLM's command line: the GPU build and the CPU build take the same flags.

Source: ``python -m vllm.entrypoints.openai.api_server --help=all`` of vLLM 0.33.0, and of 0.32.0 on CPUs. ``vllm
serve`` is not used, though the module warns that it may go: it looks for a distribution named ``vllm``, which the CPU
build is not. The key goes through the environment, where no process list shows it. ``--tool-strict-level parameter``
holds a tool call's arguments to the tool's schema without ``"strict": true`` in the request, which a chat template may
print into the prompt. A redirect of an allowed media host would lead anywhere, so none is followed.
"""

import json
import ssl
from dataclasses import replace

from inference.engines.command import Command, EnginePlan, model_flags, option, quiet_environment, switch
from inference.engines.seedless import Seedless

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The bounds that ``--max-lora-rank`` takes."""
_CPU_KV_CACHE_BYTES = 1 << 30
_REQUIRED = int(ssl.CERT_REQUIRED)


def vllm_command(plan: EnginePlan) -> Command:
    """Build the command for vLLM on GPUs. Renewed files of TLS are read again."""
    tls = ("--ssl-certfile", plan.tls_cert, "--ssl-keyfile", plan.tls_key or plan.tls_cert, "--enable-ssl-refresh")
    guesses, adapters = plan.speculation, plan.adapters
    ngram = guesses and {
        "method": "ngram",
        "num_speculative_tokens": guesses.draft_tokens,
        "prompt_lookup_min": guesses.shortest_match,
        "prompt_lookup_max": guesses.longest_match,
    }
    rank = next((rank for rank in LORA_RANKS if rank >= (plan.adapter_rank or 0)), plan.adapter_rank)
    argv = (
        *(plan.python, "-m", "vllm.entrypoints.openai.api_server"),
        *model_flags(plan, model="--model", override="--hf-overrides", seed="--seed"),
        *option("--host", plan.host),
        *option("--port", plan.port),
        "--disable-uvicorn-access-log",
        *(filter(None, tls) if plan.tls_cert else ()),
        *option("--ssl-ca-certs", plan.tls_client_ca if plan.tls_cert else None),
        *option("--ssl-cert-reqs", _REQUIRED if plan.tls_cert and plan.tls_client_ca else None),
        *option("--max-model-len", plan.max_model_len),
        *option("--max-num-seqs", plan.max_num_seqs),
        *option("--tensor-parallel-size", plan.tensor_parallel_size if plan.tensor_parallel_size > 1 else None),
        *option("--data-parallel-size", plan.data_parallel_size if plan.data_parallel_size > 1 else None),
        *option("--gpu-memory-utilization", plan.memory_fraction),
        *option("--kv-cache-memory-bytes", plan.kv_cache_memory_bytes),
        *option("--kv-cache-dtype", plan.kv_cache_dtype),
        *switch("--enforce-eager", on=plan.enforce_eager),
        "--enable-prefix-caching" if plan.prefix_caching else "--no-enable-prefix-caching",
        *option("--max-num-batched-tokens", plan.prefill_chunk_tokens),
        *option("--speculative-config", json.dumps(ngram) if ngram else None),
        *switch("--enable-lora", on=bool(adapters)),
        *option("--max-lora-rank", rank if adapters and plan.adapter_rank else None),
        *option("--max-loras", len(adapters) if len(adapters) > 1 else None),  # of one batch
        *switch("--lora-modules", on=bool(adapters)),
        *(f"{adapter.name}={adapter.path}" for adapter in adapters),
        *switch("--enable-auto-tool-choice", on=bool(plan.tool_call_parser)),
        *option("--tool-call-parser", plan.tool_call_parser or None),
        *option("--tool-strict-level", "parameter" if plan.tool_call_parser and plan.strict_tools else None),
        *option("--reasoning-parser", plan.reasoning_parser),
        *option("--generation-config", "auto" if plan.checkpoint_defaults else "vllm"),
        "--enable-prompt-tokens-details",
        *plan.extra_args,
    )
    key = {"VLLM_API_KEY": plan.api_key} if plan.api_key else {}
    return Command(argv, quiet_environment(plan) | {"VLLM_MEDIA_URL_ALLOW_REDIRECTS": "0"} | key)


def vllm_cpu_command(plan: EnginePlan) -> Command:
    """Build the command for the CPU build, with an explicit cache size and without its minute of compilation.

    The model runs in the scheduler's process, for the reasons in docs/decisions/0045-one-process-computes.md: the
    variable is the one by which vLLM's CPU platform decides. Requests lose their seed, over which the engine may end.
    """
    command = vllm_command(
        replace(
            plan,
            kv_cache_memory_bytes=plan.kv_cache_memory_bytes or _CPU_KV_CACHE_BYTES,
            enforce_eager=True,
            extra_args=("--middleware", f"{Seedless.__module__}.{Seedless.__qualname__}", *plan.extra_args),
        )
    )
    threads = max(1, plan.cores - 1)  # a core is left for HTTP and the other services
    return replace(command, defaults={"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": str(threads)})
