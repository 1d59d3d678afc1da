"""Long reads: number, speed and outcome."""

from deploy.observability.dashboards.charts import Board, Chart, Query, Row, quantiles, rate

BOARD = Board(
    "long_read",
    "Memloop: long read",
    "Documents read chunk by chunk, in requests and by workers.",
    (
        Row(
            "Reading",
            (
                Chart("Running reads", "short", (Query("sum by (job) (longread_active)", "{{job}}"),)),
                Chart(
                    "Chunks",
                    "short",
                    (Query(rate("longread_chunks_total", "strategy"), "{{strategy}}"),),
                    "Per second.",
                ),
                Chart("Time per chunk", "s", quantiles("longread_chunk_seconds")),
                Chart(
                    "Tokens",
                    "short",
                    (Query(rate("gen_ai_client_token_usage_sum", "type", 'operation="long_read"'), "{{type}}"),),
                    "Per second.",
                ),
                Chart(
                    "Weak replies",
                    "short",
                    (Query(rate("longread_degradations_total", "kind"), "{{kind}}"),),
                    "Per second. kept: empty reply; truncated: token limit; unusable: no verdict.",
                ),
                Chart(
                    "Resumed reads",
                    "short",
                    (Query("sum(increase(longread_resumed_total[1h]))", "in one hour"),),
                    "Reads whose worker died or was replaced.",
                ),
            ),
        ),
        Row(
            "Outcomes",
            (
                Chart(
                    "Finished reads",
                    "short",
                    (Query("sum by (outcome) (increase(longread_ended_total[1h]))", "{{outcome}}"),),
                    "Within one hour. refused: could never succeed.",
                ),
                Chart(
                    "Failure rate",
                    "percentunit",
                    (
                        Query("memloop:read_errors:ratio_rate5m", "5 min"),
                        Query("memloop:read_errors:ratio_rate1h", "1 h"),
                        Query("memloop:read_errors:ratio_rate6h", "6 h"),
                    ),
                    limit=0.01,
                ),
                Chart(
                    "Webhooks",
                    "short",
                    (Query("sum by (outcome) (increase(longread_webhooks_total[1h]))", "{{outcome}}"),),
                    "Attempts within one hour.",
                ),
            ),
        ),
        Row(
            "Queues",
            (
                Chart(
                    "Unfinished jobs",
                    "short",
                    (Query('max by (queue) (job_queue_depth{queue!="memory"})', "{{queue}}"),),
                    "Including running ones.",
                ),
                Chart(
                    "Longest wait for a worker",
                    "s",
                    (Query('max by (queue) (job_queue_waiting_seconds{queue!="memory"})', "{{queue}}"),),
                    limit=300,
                ),
                Chart(
                    "Oldest unfinished job",
                    "s",
                    (Query('max by (queue) (job_queue_oldest_seconds{queue!="memory"})', "{{queue}}"),),
                ),
            ),
        ),
    ),
)
