"""Builds SGLang's command line, where it takes its key too. Source: ``sglang.srt.server_args`` of 0.5.23."""

from inference.engines.command import Command, EnginePlan, model_flags, option, quiet_environment, switch

TOOL_CALL_PARSERS = {"hermes": "qwen25", "qwen3_coder": "qwen3_coder", "mistral": "mistral", "llama3_json": "llama3"}
"""vLLM's name to SGLang's. ``qwen25`` wants Qwen's newline after ``<tool_call>``, as Qwen's template has it."""
_PARAMETERS = "2"
"""``ToolStrictLevel.PARAMETER``: a call's arguments are held to the tool's schema."""
REASONING_PARSERS = {"qwen3": "qwen3", "deepseek_r1": "deepseek-r1"}


def sglang_command(plan: EnginePlan) -> Command:
    """Build the command for SGLang on GPUs.

    It guesses from what this scheduler wrote of late, for any request: its trie holds no prompt. It has no shortest
    match, and its draft begins with the last known token, which is no guess.
    """
    eager = ("--cuda-graph-backend-decode", "disabled", "--cuda-graph-backend-prefill", "disabled")
    guesses, adapters = plan.speculation, plan.adapters
    base = f"{plan.served_name}:"  # a request names BASE:ADAPTER; by the adapter's name alone it would reach the base
    argv = (
        *(plan.python, "-m", "sglang.launch_server"),
        *model_flags(plan, model="--model-path", override="--json-model-override-args", seed="--random-seed"),
        *option("--host", plan.host),
        *option("--port", plan.port),
        *option("--api-key", plan.api_key),
        "--enable-metrics",
        *option("--context-length", plan.max_model_len),
        *option("--max-running-requests", plan.max_num_seqs),
        *option("--tp-size", plan.tensor_parallel_size if plan.tensor_parallel_size > 1 else None),
        *option("--dp-size", plan.data_parallel_size if plan.data_parallel_size > 1 else None),
        *option("--mem-fraction-static", plan.memory_fraction),
        *option("--kv-cache-dtype", "fp8_e4m3" if plan.kv_cache_dtype == "fp8" else plan.kv_cache_dtype),
        *(eager if plan.enforce_eager else ()),
        *switch("--disable-radix-cache", on=not plan.prefix_caching),
        *option("--chunked-prefill-size", plan.prefill_chunk_tokens),
        *option("--speculative-algorithm", "NGRAM" if guesses else None),
        *option("--speculative-num-draft-tokens", guesses and guesses.draft_tokens + 1),
        *option(
            "--speculative-ngram-max-trie-depth", guesses.longest_match + guesses.draft_tokens if guesses else None
        ),
        *switch("--enable-lora", on=bool(adapters)),
        *option("--max-lora-rank", plan.adapter_rank if adapters else None),
        *switch("--lora-paths", on=bool(adapters)),
        *(f"{adapter.name.removeprefix(base)}={adapter.path}" for adapter in adapters),
        *option("--tool-call-parser", TOOL_CALL_PARSERS[plan.tool_call_parser] if plan.tool_call_parser else None),
        *option("--reasoning-parser", REASONING_PARSERS[plan.reasoning_parser] if plan.reasoning_parser else None),
        *option("--sampling-defaults", "model" if plan.checkpoint_defaults else "openai"),
        "--enable-cache-report",
        *plan.extra_args,
    )
    strict = {"SGLANG_TOOL_STRICT_LEVEL": _PARAMETERS} if plan.strict_tools else {}
    return Command(argv, quiet_environment(plan) | strict, frozenset({plan.api_key} if plan.api_key else ()))
