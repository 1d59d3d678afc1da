"""Runs all checks in order, one after another, and yields a table of the findings."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from inference.conformance import chats, running, tools
from inference.conformance.probe import Probe, Unmet
from memloop.wire.errors import MemloopError

Check: TypeAlias = Callable[[Probe], Awaitable[str]]
Verdict: TypeAlias = Literal["passed", "explained", "FAILED"]
CHECKS: tuple[Check, ...] = (
    chats.lists_its_model,
    chats.a_reply_ends_by_itself,
    chats.a_cut_reply_says_so,
    chats.usage_is_told,
    chats.a_stream_is_whole,
    chats.greedy_is_repeatable,
    chats.thinking_can_be_off,
    chats.thinking_is_apart,
    chats.a_reply_fits_its_schema,
    tools.required_makes_one_call,
    tools.a_named_tool_is_called,
    tools.a_named_call_ends_as_a_call,
    tools.none_calls_nothing,
    tools.a_streamed_call_is_whole,
    tools.a_tool_result_is_taken,
    tools.the_writer_calls_without_thinking,
    tools.the_writer_calls_while_thinking,
    tools.the_writer_must_call_while_thinking,
    tools.the_writer_finds_its_form,
    tools.the_writer_keeps_what_it_is_told,
    chats.unknown_fields_do_no_harm,
    chats.an_unknown_model_is_refused,
    chats.an_over_long_prompt_is_refused,
    chats.malformed_json_is_refused,
    running.a_repeated_prefix_is_cached,
    running.gauges_are_told,
    running.a_stream_that_nobody_reads_stops,
    running.an_answer_that_nobody_awaits_stops,
)
EXPLAINED: dict[Check, str] = {
    tools.a_named_call_ends_as_a_call: "vLLM returns stop; the memory writer reads the calls, not the reason",
    tools.none_calls_nothing: "vLLM lets a raw call through; no loop requests none",
    chats.thinking_is_apart: "the model or its parser does not think: the loops work without thinking",
    tools.the_writer_keeps_what_it_is_told: "the model loses facts: choose the better form, or another model",
    running.a_repeated_prefix_is_cached: "no prefix cache, or none reported: reading costs more, nothing else",
    running.gauges_are_told: "not vLLM or SGLang: autoscaling needs another signal",
    running.a_stream_that_nobody_reads_stops: "cannot be seen without gauges",
    running.an_answer_that_nobody_awaits_stops: "cannot be seen without gauges",
}
"""Failures that stop no part of the stack, with the reason; those of running work only if gauges are missing."""
_SEEN_BY_GAUGES = (running.a_stream_that_nobody_reads_stops, running.an_answer_that_nobody_awaits_stops)


@dataclass(frozen=True, slots=True)
class Row:
    """One check's outcome; ``detail`` holds the finding, with its explanation if any."""

    name: str
    verdict: Verdict
    detail: str
    seconds: float


async def run_checks(probe: Probe, checks: Sequence[Check] = CHECKS) -> AsyncIterator[Row]:
    """Run the checks; a check that raises an engine error has failed."""
    for check in checks:
        began = time.perf_counter()
        verdict: Verdict = "passed"
        try:
            detail = await check(probe)
        except (Unmet, MemloopError, ValueError, LookupError, TypeError) as problem:
            verdict, detail = "FAILED", str(problem)[:200] or type(problem).__name__
            seen_by_gauges = check in _SEEN_BY_GAUGES and probe.metrics_url is not None
            if check in EXPLAINED and not seen_by_gauges:
                verdict, detail = "explained", f"{detail} ({EXPLAINED[check]})"
        yield Row(check.__name__.replace("_", " "), verdict, detail, time.perf_counter() - began)
