"""The limits among the values: each reaches gateway and worker, as a number that they read."""

import re

import pytest
import yaml

from tests.deploy.chart.chart_release import CHART, Rendered, Values, changed

DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())["limits"]
OF_THE_WORKER = {"deadLetterSeconds"}
SHARES = {"tenantShare", "redisFullShare", "tenantQueueShare"}
NUMBERS = [name for name, value in DEFAULTS.items() if not isinstance(value, str)]


def other(name: str) -> float:
    """A value that is not the default."""
    return DEFAULTS[name] / 2 if name in SHARES else DEFAULTS[name] + 70


def named(setting: str) -> str:
    """The number in a setting without its exponent, if it has one."""
    assert re.fullmatch(r"\d+(\.\d+)?", setting), setting
    return setting


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_a_limit_is_a_setting_of_gateway_and_worker(chart: Rendered, minimal: Values, name: str, process: str) -> None:
    before = chart.objects(minimal).settings(f"demo-{process}")
    after = chart.objects(changed(minimal, f"limits.{name}", other(name))).settings(f"demo-{process}")
    changes = [(before[key], after[key]) for key in before if before[key] != after[key]]
    if process == "gateway" and name in OF_THE_WORKER:
        assert changes == []
        return
    [(old, new)] = changes
    assert (float(named(str(old))), float(named(str(new)))) == (DEFAULTS[name], other(name))


@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_weights_of_tenants_reach_gateway_and_worker(chart: Rendered, minimal: Values, process: str) -> None:
    assert "MEMLOOP_TENANT_WEIGHTS" not in chart.objects(minimal).settings(f"demo-{process}")
    weighted = chart.objects(changed(minimal, "limits.tenantWeights", "acme=4,beta=2"))
    assert weighted.settings(f"demo-{process}")["MEMLOOP_TENANT_WEIGHTS"] == "acme=4,beta=2"


def test_a_process_own_environment_wins_over_a_limit(chart: Rendered, minimal: Values) -> None:
    values = changed(minimal, "gateway.env", {"MEMLOOP_MAX_FOLLOWERS": "7"})
    objects = chart.objects(changed(values, "limits.maxFollowers", 9))
    assert objects.settings("demo-gateway")["MEMLOOP_MAX_FOLLOWERS"] == "7"
    assert objects.settings("demo-worker")["MEMLOOP_MAX_FOLLOWERS"] == "9"


def test_bodies_in_progress_leave_the_gateway_two_thirds_of_its_memory(chart: Rendered, minimal: Values) -> None:
    objects = chart.objects(minimal)
    limit = objects.pod("demo-gateway")["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert limit == "512Mi"
    assert int(str(objects.settings("demo-gateway")["MEMLOOP_MAX_ACTIVE_BYTES"])) <= 512 * 2**20 / 3
