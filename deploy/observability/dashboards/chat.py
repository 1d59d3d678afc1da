"""Chats: rate, latency, errors and the effect of memory."""

from deploy.observability.dashboards.charts import Board, Chart, Query, Row, quantile, quantiles, rate

_CHAT = 'route="/v1/chat/completions"'

BOARD = Board(
    "chat",
    "Memloop: chat",
    "The gateway's OpenAI routes.",
    (
        Row(
            "Chats",
            (
                Chart(
                    "Chats by status",
                    "reqps",
                    (Query(rate("gateway_request_seconds_count", "code", _CHAT), "{{code}}"),),
                    "499: the client disconnected.",
                ),
                Chart("Total time", "s", quantiles("gateway_request_seconds", _CHAT)),
                Chart(
                    "Time to the first token",
                    "s",
                    quantiles("gateway_time_to_first_token_seconds"),
                    "Streams only.",
                    limit=5,
                ),
                Chart(
                    "Gateway overhead",
                    "s",
                    quantiles("gateway_overhead_seconds", _CHAT),
                    "Time without engine work, recall included.",
                ),
                Chart(
                    "Other routes, p95",
                    "s",
                    (
                        Query(
                            quantile(0.95, "gateway_request_seconds", "route", 'route!="/v1/chat/completions"'),
                            "{{route}}",
                        ),
                    ),
                ),
                Chart(
                    "Tokens",
                    "short",
                    (Query(rate("gen_ai_client_token_usage_sum", "type", 'operation="chat"'), "{{type}}"),),
                    "Per second.",
                ),
            ),
        ),
        Row(
            "Errors",
            (
                Chart(
                    "Error rate",
                    "percentunit",
                    (
                        Query("memloop:chat_errors:ratio_rate5m", "5 min"),
                        Query("memloop:chat_errors:ratio_rate1h", "1 h"),
                        Query("memloop:chat_errors:ratio_rate6h", "6 h"),
                    ),
                    "Errors of ours and broken streams.",
                    limit=0.005,
                ),
                Chart(
                    "Failed engine calls",
                    "reqps",
                    (Query(rate("upstream_errors_total", "model, kind"), "{{model}} {{kind}}"),),
                ),
                Chart(
                    "Open circuits",
                    "bool_yes_no",
                    (Query("max by (job, model, engine) (upstream_circuit_open)", "{{job}} → {{model}} {{engine}}"),),
                ),
                Chart(
                    "Disconnected clients, skipped engines",
                    "reqps",
                    (
                        Query(rate("upstream_abort_total"), "disconnected"),
                        Query(rate("upstream_fallback_total"), "skipped"),
                    ),
                ),
                Chart(
                    "Requests in progress",
                    "short",
                    (Query('sum by (lane) (gateway_active_requests{job="gateway"})', "{{lane}}"),),
                ),
                Chart(
                    "Capacity in use",
                    "percentunit",
                    (Query('gateway_fullness_ratio{job="gateway"}', "{{instance}}"),),
                    limit=0.9,
                ),
            ),
        ),
        Row(
            "Memory",
            (
                Chart("Recall", "s", quantiles("memory_search_seconds", 'stage="chat"')),
                Chart(
                    "Chats without memory",
                    "reqps",
                    (
                        Query(rate("memory_recall_failed_total"), "search failed"),
                        Query(rate("memory_turns_not_queued_total"), "turn not queued"),
                    ),
                ),
                Chart(
                    "Requests without rate limits",
                    "reqps",
                    (Query(rate("rate_limit_skipped_total"), "not counted"),),
                    "Rate limits are off while Redis is down.",
                ),
            ),
        ),
    ),
)
