"""Every file of values, linted and rendered by Helm; every object against the schemas of three Kubernetes versions."""

import copy
import json
from collections import Counter
from pathlib import Path

import helm_python as helm
import jsonschema
import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs]
import pytest

from tests.deploy.chart.chart_release import CHART, FILES, PRESETS, Object, Rendered, Values, values_of
from tests.deploy.chart.custom_resources import PUBLISHED, WRITTEN, UnknownField, validate_custom

VERSIONS = ("1.31", "1.34", "1.37")
CUSTOM = set(PUBLISHED) | {kind for _, kind in WRITTEN}


def validate(found: Object, version: str) -> None:
    if found["kind"] in CUSTOM:
        validate_custom(found, version)
    else:
        kubernetes_validate.validate(found, version, strict=True)


def test_the_matrix_has_the_presets_and_many_more_files() -> None:
    assert PRESETS == ["aks", "eks", "gke", "openshift"]
    assert len(FILES) >= 25


def test_lint_finds_nothing_but_the_missing_icon(values: Values) -> None:
    report = helm.lint(str(CHART), values=values, strict=True, namespace="memloop", kube_version="v1.34.0")
    assert report["errors"] == []
    assert [note["error"] for note in report["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid_for_kubernetes(chart: Rendered, version: str) -> None:
    different = {json.dumps(one, sort_keys=True) for name in FILES for one in chart.objects(values_of(name))}
    assert len(different) > 100
    for one in map(json.loads, sorted(different)):
        validate(one, version)


def test_no_two_objects_have_one_name(chart: Rendered, values: Values) -> None:
    names = Counter((one["kind"], one["metadata"]["name"]) for one in chart.objects(values))
    assert names.most_common(1)[0][1] == 1


def test_two_releases_share_no_object(chart: Rendered) -> None:
    first, second = (chart.objects(values_of("everything"), name=name) for name in ("one", "two"))
    names = [{(one["kind"], one["metadata"]["name"]) for one in objects} for objects in (first, second)]
    assert names[0] & names[1] == set()


def test_all_objects_are_in_the_releases_namespace(chart: Rendered, values: Values) -> None:
    namespaced = [one for one in chart.objects(values) if one["kind"] != "PriorityClass"]
    assert {one["metadata"]["namespace"] for one in namespaced} == {"memloop"}


def test_every_kind_of_object_is_in_the_matrix(chart: Rendered) -> None:
    kinds = {one["kind"] for name in FILES for one in chart.objects(values_of(name))}
    assert kinds >= CUSTOM - {"PrometheusRule"} | {"HorizontalPodAutoscaler", "Ingress", "PersistentVolumeClaim"}


@pytest.mark.parametrize("kind", sorted(CUSTOM - {"PrometheusRule"}))
def test_a_misspelt_field_of_a_custom_resource_is_found(chart: Rendered, kind: str) -> None:
    found = next(one for name in FILES for one in chart.objects(values_of(name)).of(kind))
    broken = copy.deepcopy(found)
    broken["spec"]["misspelt"] = "x"
    with pytest.raises((UnknownField, jsonschema.ValidationError)):
        validate(broken, VERSIONS[0])


def test_notes_name_the_gateways_address(chart: Rendered, values: Values) -> None:
    notes = chart.files(values)["memloop/templates/NOTES.txt"]
    assert "http://demo-gateway.memloop:7800/v1" in notes


def test_the_chart_can_be_a_part_of_another(minimal: Values, tmp_path: Path) -> None:
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts/memloop").symlink_to(CHART)
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: all, version: 1.0.0}")
    with helm.Chart.load(str(tmp_path)) as whole:
        files = whole.render({"memloop": minimal, "global": {"region": "north"}}, name="demo", namespace="memloop")
    assert "kind: Deployment" in files["all/charts/memloop/templates/gateway.yaml"]


def test_a_name_that_would_not_fit_is_refused(chart: Rendered, minimal: Values) -> None:
    with pytest.raises(helm.HelmError, match="the release's name is too long"):
        chart.objects(minimal, name="a" * 53)
