"""Overview: objectives, work and the state of every process."""

from deploy.observability.dashboards.charts import Board, Chart, Number, Query, Row, rate

_OURS = 'job=~"gateway|worker|memory-store|inference"'

BOARD = Board(
    "overview",
    "Memloop: overview",
    "Objectives, work and the state of every process.",
    (
        Row(
            "Objectives, last hour",
            (
                Number("Failed chats", "percentunit", "memloop:chat_errors:ratio_rate1h", 0.005),
                Number("First tokens over 5 s", "percentunit", "memloop:first_token_slow:ratio_rate1h", 0.05),
                Number("Failed reads", "percentunit", "memloop:read_errors:ratio_rate1h", 0.01),
                Number("Firing alerts", "short", 'count(ALERTS{alertstate="firing"}) or vector(0)', 1),
                Number("Processes down", "short", f"count(up{{{_OURS}}}) - sum(up{{{_OURS}}})", 1),
                Number("Dead letters", "short", "max(job_dead_letters)", 1),
            ),
            across=6,
        ),
        Row(
            "Work",
            (
                Chart("Requests", "reqps", (Query(rate("gateway_request_seconds_count", "route"), "{{route}}"),)),
                Chart(
                    "Tokens",
                    "short",
                    (Query(rate("gen_ai_client_token_usage_sum", "operation, type"), "{{operation}} {{type}}"),),
                    "Per second.",
                ),
                Chart(
                    "Chunks read",
                    "short",
                    (Query(rate("longread_chunks_total", "strategy"), "{{strategy}}"),),
                    "Per second.",
                ),
                Chart(
                    "Answers by status", "reqps", (Query(rate("gateway_request_seconds_count", "code"), "{{code}}"),)
                ),
                Chart("Unfinished jobs", "short", (Query("max by (queue) (job_queue_depth)", "{{queue}}"),)),
                Chart(
                    "Oldest unfinished job",
                    "s",
                    (Query("max by (queue) (job_queue_oldest_seconds)", "{{queue}}"),),
                    limit=600,
                ),
            ),
        ),
        Row(
            "Processes",
            (
                Chart(
                    "Dependencies",
                    "bool_yes_no",
                    (Query("min by (job, dependency) (dependency_up)", "{{job}} → {{dependency}}"),),
                    "Whether each process can reach its dependencies.",
                ),
                Chart(
                    "Event loop lag, p99",
                    "s",
                    (Query("memloop:loop_lag_seconds:p99_5m", "{{job}} {{instance}}"),),
                    limit=0.25,
                ),
                Chart(
                    "CPU",
                    "percentunit",
                    (Query(f"rate(process_cpu_seconds_total{{{_OURS}}}[$__rate_interval])", "{{job}} {{instance}}"),),
                    "1 is one core.",
                ),
                Chart(
                    "Memory",
                    "percentunit",
                    (Query("process_resident_memory_bytes / process_memory_limit_bytes", "{{job}} {{instance}}"),),
                    "Share of the process's memory limit.",
                    limit=0.9,
                ),
                Chart("Disk in use", "percentunit", (Query("1 - disk_free_ratio", "{{job}} {{instance}}"),), limit=0.9),
                Chart(
                    "Redis",
                    "percentunit",
                    (
                        Query("max(jobs_redis_used_bytes / jobs_redis_limit_bytes)", "memory"),
                        Query("min(jobs_redis_durable)", "durable"),
                    ),
                    limit=0.85,
                ),
                Chart(
                    "Starts",
                    "short",
                    (Query(f"sum by (job) (changes(process_start_time_seconds{{{_OURS}}}[1h]))", "{{job}}"),),
                    "Within one hour.",
                ),
                Chart("Open files", "short", (Query(f"process_open_fds{{{_OURS}}}", "{{job}} {{instance}}"),)),
                Chart(
                    "Versions",
                    "short",
                    (Query("count by (part, version) (memloop_build_info)", "{{part}} {{version}}"),),
                    "Processes per version.",
                ),
            ),
        ),
    ),
)
