"""The inference engine: the launcher's metrics of any engine, and vLLM's own."""

from deploy.observability.dashboards.charts import Board, Chart, Query, Row, quantiles, rate


def _over_time(metric: str) -> str:
    return f"{rate(f'{metric}_sum')} / {rate(f'{metric}_count')}"


BOARD = Board(
    "engine",
    "Memloop: engine",
    "The first row works for vLLM and SGLang; the others are vLLM's metrics.",
    (
        Row(
            "Any engine",
            (
                Chart("Ready", "bool_yes_no", (Query("inference_engine_up", "{{instance}}"),)),
                Chart(
                    "Requests",
                    "short",
                    (
                        Query("sum(inference_engine_requests_running)", "running"),
                        Query("sum(inference_engine_requests_waiting)", "waiting"),
                    ),
                    limit=10,
                ),
                Chart(
                    "KV cache in use",
                    "percentunit",
                    (Query("inference_engine_kv_cache_used_ratio", "{{instance}}"),),
                    limit=0.95,
                ),
                Chart("Start-up time", "s", (Query("inference_engine_start_seconds", "{{instance}}"),)),
                Chart("Warm-up time by shape", "s", (Query("max by (shape) (inference_warmup_seconds)", "{{shape}}"),)),
                Chart(
                    "Launcher memory",
                    "bytes",
                    (Query('process_resident_memory_bytes{job="inference"}', "{{instance}}"),),
                    "Without the engine, which is a separate process.",
                ),
            ),
        ),
        Row(
            "vLLM: throughput",
            (
                Chart(
                    "Tokens",
                    "short",
                    (
                        Query(rate("vllm:prompt_tokens_total"), "prompt"),
                        Query(rate("vllm:generation_tokens_total"), "generated"),
                    ),
                    "Per second.",
                ),
                Chart(
                    "Finished requests",
                    "reqps",
                    (Query(rate("vllm:request_success_total", "finished_reason"), "{{finished_reason}}"),),
                ),
                Chart(
                    "Running and waiting requests",
                    "short",
                    (
                        Query("sum(vllm:num_requests_running)", "running"),
                        Query("sum(vllm:num_requests_waiting)", "waiting"),
                    ),
                ),
                Chart(
                    "Prompt tokens from the prefix cache",
                    "percentunit",
                    (
                        Query(
                            f"{rate('vllm:prefix_cache_hits_total')} / {rate('vllm:prefix_cache_queries_total')}",
                            "hits",
                        ),
                    ),
                ),
                Chart(
                    "Preemptions",
                    "short",
                    (Query(rate("vllm:num_preemptions_total"), "preemptions"),),
                    "Per second. The cache is too small for the running requests.",
                ),
                Chart("KV cache in use", "percentunit", (Query("max(vllm:kv_cache_usage_perc)", "in use"),)),
            ),
        ),
        Row(
            "vLLM: latency",
            (
                Chart("Time to the first token", "s", quantiles("vllm:time_to_first_token_seconds")),
                Chart("Inter-token latency", "s", quantiles("vllm:inter_token_latency_seconds")),
                Chart("Total request time", "s", quantiles("vllm:e2e_request_latency_seconds")),
                Chart(
                    "Request phases, mean",
                    "s",
                    (
                        Query(_over_time("vllm:request_queue_time_seconds"), "queue"),
                        Query(_over_time("vllm:request_prefill_time_seconds"), "prefill"),
                        Query(_over_time("vllm:request_decode_time_seconds"), "decode"),
                    ),
                ),
                Chart("Prompt length, mean", "short", (Query(_over_time("vllm:request_prompt_tokens"), "tokens"),)),
                Chart("Reply length, mean", "short", (Query(_over_time("vllm:request_generation_tokens"), "tokens"),)),
            ),
        ),
    ),
)
