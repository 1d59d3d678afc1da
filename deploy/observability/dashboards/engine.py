"""The inference engine: what the launcher says of any engine, and vLLM's own figures."""

from deploy.observability.dashboards.charts import Board, Chart, Query, Row, quantiles, rate


def _over_time(metric: str) -> str:
    return f"{rate(f'{metric}_sum')} / {rate(f'{metric}_count')}"


BOARD = Board(
    "engine",
    "Memloop: engine",
    "The first row is the same for vLLM and SGLang; the others are vLLM's.",
    (
        Row(
            "Any engine",
            (
                Chart("Answers and is warm", "bool_yes_no", (Query("inference_engine_up", "{{instance}}"),)),
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
                Chart("From start to served", "s", (Query("inference_engine_start_seconds", "{{instance}}"),)),
                Chart("Warm-up by shape", "s", (Query("max by (shape) (inference_warmup_seconds)", "{{shape}}"),)),
                Chart(
                    "Memory of the launcher",
                    "bytes",
                    (Query('process_resident_memory_bytes{job="inference"}', "{{instance}}"),),
                    "The engine is a process of its own.",
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
                    "Requests that ended",
                    "reqps",
                    (Query(rate("vllm:request_success_total", "finished_reason"), "{{finished_reason}}"),),
                ),
                Chart(
                    "Running and waiting",
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
                    "Preempted",
                    "short",
                    (Query(rate("vllm:num_preemptions_total"), "preemptions"),),
                    "Per second; the cache was too small for what ran.",
                ),
                Chart("KV cache in use", "percentunit", (Query("max(vllm:kv_cache_usage_perc)", "in use"),)),
            ),
        ),
        Row(
            "vLLM: latency",
            (
                Chart("Time to the first token", "s", quantiles("vllm:time_to_first_token_seconds")),
                Chart("Between tokens", "s", quantiles("vllm:inter_token_latency_seconds")),
                Chart("Whole request", "s", quantiles("vllm:e2e_request_latency_seconds")),
                Chart(
                    "Parts of a request, mean",
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
