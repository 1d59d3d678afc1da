"""Long reads: how many run, how fast they read, how they end."""

from deploy.observability.dashboards.charts import Board, Chart, Query, Row, quantiles, rate

BOARD = Board(
    "long_read",
    "Memloop: long read",
    "Documents read chunk by chunk, by requests and by workers.",
    (
        Row(
            "Reading",
            (
                Chart("Reads that run", "short", (Query("sum by (job) (longread_active)", "{{job}}"),)),
                Chart(
                    "Chunks",
                    "short",
                    (Query(rate("longread_chunks_total", "strategy"), "{{strategy}}"),),
                    "Per second.",
                ),
                Chart("From one chunk to the next", "s", quantiles("longread_chunk_seconds")),
                Chart(
                    "Tokens",
                    "short",
                    (Query(rate("gen_ai_client_token_usage_sum", "type", 'operation="long_read"'), "{{type}}"),),
                    "Per second.",
                ),
                Chart(
                    "Replies that fell short",
                    "short",
                    (Query(rate("longread_degradations_total", "kind"), "{{kind}}"),),
                    "Per second. kept: empty; truncated: at the token limit; unusable: no verdict.",
                ),
                Chart(
                    "Taken up again",
                    "short",
                    (Query("sum(increase(longread_resumed_total[1h]))", "in an hour"),),
                    "Reads whose worker was lost or replaced.",
                ),
            ),
        ),
        Row(
            "Ends",
            (
                Chart(
                    "Reads that ended",
                    "short",
                    (Query("sum by (outcome) (increase(longread_ended_total[1h]))", "{{outcome}}"),),
                    "Within an hour. refused: could never work.",
                ),
                Chart(
                    "Share that fails",
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
                    "Attempts within an hour.",
                ),
            ),
        ),
        Row(
            "Queues",
            (
                Chart(
                    "Jobs that are not done",
                    "short",
                    (Query('max by (queue) (job_queue_depth{queue!="memory"})', "{{queue}}"),),
                    "Running ones too.",
                ),
                Chart(
                    "Longest wait for a worker",
                    "s",
                    (Query('max by (queue) (job_queue_waiting_seconds{queue!="memory"})', "{{queue}}"),),
                    limit=300,
                ),
                Chart(
                    "Oldest job that is not done",
                    "s",
                    (Query('max by (queue) (job_queue_oldest_seconds{queue!="memory"})', "{{queue}}"),),
                ),
            ),
        ),
    ),
)
