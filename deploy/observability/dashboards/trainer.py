"""A training run: learning, drift from the reference, and time."""

from deploy.observability.dashboards.charts import Board, Chart, Query, Row


def _values(*names: str) -> tuple[Query, ...]:
    return tuple(Query(f'trainer_value{{name="{name}"}}', name) for name in names)


def _spread(name: str) -> tuple[Query, ...]:
    return _values(*(f"{name}/{part}" for part in ("min", "mean", "max")))


def _family(prefix: str, unit_legend: str = "{{name}}") -> tuple[Query, ...]:
    return (Query(f'trainer_value{{name=~"{prefix}/.+"}}', unit_legend),)


BOARD = Board(
    "trainer",
    "Memloop: trainer",
    "Figures of verl's log, served by `python -m trainer.metrics_exporter`. Each is of the newest step.",
    (
        Row(
            "Progress",
            (
                Chart("Step", "short", (Query("trainer_step", "{{instance}}"),)),
                Chart(
                    "Since the last step",
                    "s",
                    (Query("time() - trainer_logged_timestamp_seconds", "{{instance}}"),),
                    limit=7200,
                ),
                Chart("Tokens per second", "short", _values("perf/throughput")),
            ),
        ),
        Row(
            "Learning",
            (
                Chart("Reward", "short", _spread("critic/rewards"), signed=True),
                Chart("Advantage", "short", _spread("critic/advantages"), signed=True),
                Chart("Loss", "short", _values("actor/loss", "actor/pg_loss"), signed=True),
                Chart("Entropy", "short", _values("actor/entropy")),
                Chart("Gradient norm", "short", _values("actor/grad_norm")),
                Chart("Learning rate", "short", _values("actor/lr")),
            ),
        ),
        Row(
            "Policy drift",
            (
                Chart("KL to the reference", "short", _values("actor/kl_loss"), signed=True),
                Chart("KL to the last policy", "short", _values("actor/ppo_kl", "rollout_corr/kl"), signed=True),
                Chart("Clip fraction", "percentunit", _values("actor/pg_clipfrac", "actor/pg_clipfrac_lower")),
                Chart(
                    "Rollout against trainer",
                    "short",
                    _values("training/rollout_probs_diff_mean", "training/rollout_probs_diff_max"),
                    "Difference of the token probabilities.",
                ),
                Chart(
                    "Staleness",
                    "short",
                    _spread("training/off_policy/trajectory_staleness"),
                    "Updates since the policy that produced the trajectory.",
                ),
                Chart("Turns per trajectory", "short", _spread("num_turns")),
            ),
        ),
        Row(
            "Lengths and time",
            (
                Chart("Prompt length", "short", _spread("prompt_length"), "Tokens."),
                Chart("Reply length", "short", _spread("response_length"), "Tokens."),
                Chart("Truncated", "percentunit", _values("response_length/clip_ratio", "prompt_length/clip_ratio")),
                Chart("Phases of a step", "s", _family("timing_s")),
                Chart(
                    "Memory",
                    "decgbytes",
                    _values("actor/perf/max_memory_allocated_gb", "actor/perf/cpu_memory_used_gb"),
                ),
                Chart(
                    "Utilisation",
                    "percentunit",
                    _values("perf/mfu/actor"),
                    "Share of the accelerator's peak, estimated by verl.",
                ),
            ),
        ),
    ),
)
