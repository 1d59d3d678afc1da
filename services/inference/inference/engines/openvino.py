"""The command line of our own engine over OpenVINO GenAI, for GGUF weights on a processor."""

from inference.engines.command import Command, EnginePlan, option, quiet_environment


def openvino_command(plan: EnginePlan) -> Command:
    """Build the command. The key goes through the environment, and so do the files of TLS, as they are given to us."""
    argv = (
        *(plan.python, "-m", "inference.openvino.server"),
        *option("--model", plan.model),
        *option("--served-model-name", plan.served_name),
        *option("--host", plan.host),
        *option("--port", plan.port),
        *option("--max-model-len", plan.max_model_len),
        *option("--max-num-seqs", plan.max_num_seqs),
        *option("--max-num-batched-tokens", plan.prefill_chunk_tokens),
        *option("--kv-cache-bytes", plan.kv_cache_memory_bytes),
        *plan.extra_args,
    )
    key = {"MEMLOOP_ENGINE_API_KEY": plan.api_key} if plan.api_key else {}
    return Command(argv, quiet_environment(plan) | key)
