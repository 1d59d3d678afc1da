"""The metrics of several processes on one port are those of one."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from memloop_service.merged_metrics import merged


def process(*, calls: int, seconds: float, active: int) -> str:
    registry = CollectorRegistry()
    counter = Counter("calls", "Calls.", ("route",), registry=registry)
    counter.labels("/a").inc(calls)
    Histogram("call_seconds", "Time.", registry=registry, buckets=(1, 10)).observe(seconds)
    Gauge("active", "Running.", ("lane",), registry=registry).labels("x").set(active)
    return generate_latest(registry).decode()


def lines(text: bytes) -> set[str]:
    return {line for line in text.decode().splitlines() if not line.startswith("#") and "_created" not in line}


def test_counters_and_histograms_are_added_up_and_gauges_stay_apart() -> None:
    whole = merged({"0": process(calls=2, seconds=0.5, active=1), "1": process(calls=3, seconds=5, active=4)})
    assert lines(whole) == {
        'calls_total{route="/a"} 5.0',
        'call_seconds_bucket{le="1.0"} 1.0',
        'call_seconds_bucket{le="10.0"} 2.0',
        'call_seconds_bucket{le="+Inf"} 2.0',
        "call_seconds_count 2.0",
        "call_seconds_sum 5.5",
        'active{lane="x",process="0"} 1.0',
        'active{lane="x",process="1"} 4.0',
    }


def test_a_metric_that_one_process_lacks_is_that_of_the_others() -> None:
    whole = merged({"0": "", "1": process(calls=3, seconds=5, active=4)})
    assert 'calls_total{route="/a"} 3.0' in lines(whole)
