"""What the launcher makes of an engine's own metrics."""

import pytest

from inference.metrics import EngineLoad, engine_load

TWO_COPIES = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.7
"""


def test_requests_of_data_parallel_copies_add_up_and_shares_of_their_caches_do_not() -> None:
    load = engine_load(TWO_COPIES)
    assert (load.running, load.waiting) == (7.0, 1.0)
    assert load.cache_used == pytest.approx(0.6)


def test_one_copy_shows_its_own_share() -> None:
    text = '# TYPE sglang:token_usage gauge\nsglang:token_usage{model_name="m"} 0.25\n'
    assert engine_load(text) == EngineLoad(cache_used=0.25)


BUSY = """\
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs 1.0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total 0.0
# TYPE sglang:realtime_tokens_total counter
sglang:realtime_tokens_total{mode="prefill_compute"} 4096.0
sglang:realtime_tokens_total{mode="prefill_cache"} 8192.0
sglang:realtime_tokens_total{mode="decode"} 120.0
"""


def test_sglangs_tokens_are_counted_as_they_are_computed_and_not_when_a_request_ends() -> None:
    assert engine_load(BUSY) == EngineLoad(running=1.0, generated=4216.0)


def test_an_engine_without_these_metrics_has_no_load() -> None:
    assert engine_load("# TYPE python_gc_objects gauge\npython_gc_objects 5.0\n") == EngineLoad()
