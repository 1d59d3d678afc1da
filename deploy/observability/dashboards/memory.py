"""Memory: writes, the store and search."""

from deploy.observability.dashboards.charts import Board, Chart, Query, Row, quantile, quantiles, rate

_WRITES = 'queue="memory"'
_HITS = rate("memory_store_embed_cache_total", where='found="hit"')

BOARD = Board(
    "memory",
    "Memloop: memory",
    "The memory writer on the worker and the memory store.",
    (
        Row(
            "Writing",
            (
                Chart("Waiting writes", "short", (Query("max(memory_queue_depth)", "jobs"),)),
                Chart(
                    "Oldest write",
                    "s",
                    (
                        Query("max(memory_oldest_job_seconds)", "unfinished"),
                        Query(f"max(job_queue_waiting_seconds{{{_WRITES}}})", "not taken"),
                    ),
                    limit=600,
                ),
                Chart(
                    "Dead letters",
                    "short",
                    (
                        Query("max(job_dead_letters)", "dead letters"),
                        Query("sum(increase(memory_dead_letters_total[1h]))", "writes in one hour"),
                    ),
                    limit=1,
                ),
                Chart(
                    "Decisions", "short", (Query(rate("memory_action_total", "action"), "{{action}}"),), "Per second."
                ),
                Chart(
                    "Decision parsing",
                    "short",
                    (Query(rate("memory_tool_parse_total", "path"), "{{path}}"),),
                    "Per second.",
                ),
                Chart(
                    "Unreadable decisions",
                    "percentunit",
                    (Query("memloop:writer_unparsed:ratio_rate30m", "30 min"),),
                    limit=0.05,
                ),
                Chart(
                    "Kept word for word",
                    "percentunit",
                    (Query("memloop:kept_verbatim:ratio_rate30m", "30 min"),),
                    limit=0.05,
                ),
                Chart(
                    "Kept and decided again",
                    "short",
                    (
                        Query(rate("memory_kept_verbatim_total", "reason"), "kept: {{reason}}"),
                        Query(rate("memory_redecided_total", "status"), "decided again: {{status}}"),
                    ),
                    "Per second.",
                ),
                Chart(
                    "Tokens",
                    "short",
                    (Query(rate("gen_ai_client_token_usage_sum", "type", 'operation="memory_write"'), "{{type}}"),),
                    "Per second.",
                ),
                Chart(
                    "Write outcomes",
                    "short",
                    (Query(rate("memory_store_writes_total", "outcome, rule"), "{{outcome}}: {{rule}}"),),
                    "Per second.",
                ),
                Chart(
                    "Removed",
                    "short",
                    (
                        Query(rate("memory_store_erased_total", "place"), "erased: {{place}}"),
                        Query(rate("memory_store_expired_total"), "expired"),
                    ),
                    "Per second.",
                ),
            ),
        ),
        Row(
            "Store",
            (
                Chart(
                    "Requests",
                    "reqps",
                    (
                        Query(
                            rate("memory_store_request_seconds_count", "route", 'route!~"/livez|/readyz|/metrics"'),
                            "{{route}}",
                        ),
                    ),
                ),
                Chart(
                    "Time by route, p95",
                    "s",
                    (Query(quantile(0.95, "memory_store_request_seconds", "route"), "{{route}}"),),
                ),
                Chart(
                    "Error rate",
                    "percentunit",
                    (Query("memloop:store_errors:ratio_rate5m", "5 min"),),
                    limit=0.02,
                ),
                Chart(
                    "Search by stage, p95", "s", (Query(quantile(0.95, "memory_search_seconds", "stage"), "{{stage}}"),)
                ),
                Chart("Search", "s", quantiles("memory_search_seconds", 'stage="total"')),
                Chart(
                    "Flush of the vector files",
                    "s",
                    (
                        *quantiles("memory_store_flush_seconds"),
                        Query("sum(increase(memory_store_flush_failed_total[1h]))", "failed in one hour"),
                    ),
                    "Qdrant Edge only.",
                ),
            ),
        ),
        Row(
            "Embedding",
            (
                Chart("Embedder call", "s", quantiles("memory_store_embed_seconds")),
                Chart(
                    "Waiting texts",
                    "short",
                    (
                        Query("sum(memory_store_embed_waiting_texts)", "waiting"),
                        Query(rate("memory_store_embed_refused_total"), "refused per second"),
                    ),
                ),
                Chart(
                    "Texts per call",
                    "short",
                    (
                        Query(
                            f"{rate('memory_store_embed_texts_sum')} / {rate('memory_store_embed_texts_count')}", "mean"
                        ),
                    ),
                ),
                Chart(
                    "Vector cache hits",
                    "percentunit",
                    (Query(f"{_HITS} / {rate('memory_store_embed_cache_total')}", "hits"),),
                ),
                Chart(
                    "Copy progress",
                    "short",
                    (Query("max(memory_store_copied_points)", "done"), Query("max(memory_store_copy_points)", "total")),
                    "A flush or a re-embedding.",
                ),
                Chart(
                    "Copies",
                    "short",
                    (Query("sum by (kind, status) (increase(memory_store_copies_total[1d]))", "{{kind}} {{status}}"),),
                    "Within a day.",
                ),
            ),
        ),
    ),
)
