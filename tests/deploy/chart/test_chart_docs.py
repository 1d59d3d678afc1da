"""Each `helm` command of the page about Kubernetes, carried out by Helm as far as that goes without a cluster."""

import argparse
import re
import shlex

import helm_python as helm
import pytest
import yaml

from tests.deploy.chart.chart_release import CHART, FILES, ROOT, Values, merged

PAGE = ROOT / "docs/deploy/kubernetes.md"
NEEDS_A_CLUSTER = {"test", "rollback", "uninstall"}
COMMANDS = re.findall(r"^    (helm .+)$", PAGE.read_text(), re.MULTILINE)


def parsed(command: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("action")
    parser.add_argument("words", nargs="+")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("-f", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    return parser.parse_args(shlex.split(command)[1:])


def values_of_command(arguments: argparse.Namespace) -> Values:
    values: Values = {}
    for path in arguments.f:
        values = merged(values, yaml.safe_load((ROOT / path).read_text()))
    for expression in arguments.set:
        values = merged(values, helm.parse_set_string(expression))
    return values


def carry_out(arguments: argparse.Namespace, values: Values) -> str:
    """The manifest. Raises helm.HelmError."""
    *name, chart = arguments.words
    assert ROOT / chart == CHART
    if arguments.action == "lint":
        assert helm.lint(str(CHART), values=values)["errors"] == []
        return "---"
    with helm.Config(namespace=arguments.namespace, storage_driver="memory") as config:
        if arguments.action == "install":
            return config.install(str(CHART), name[0], values, dry_run="client")["manifest"]
    with helm.Chart.load(str(CHART)) as loaded:
        upgrade = arguments.action == "upgrade"
        files = loaded.render(values, name=name[0], namespace=arguments.namespace, is_upgrade=upgrade)
    return "\n".join(files.values())


def test_the_page_installs_upgrades_lints_and_renders() -> None:
    assert {parsed(command).action for command in COMMANDS} >= {"install", "upgrade", "lint", "template"}


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.split()[1] not in NEEDS_A_CLUSTER])
def test_the_command_works(command: str) -> None:
    arguments = parsed(command)
    assert "---" in carry_out(arguments, values_of_command(arguments))


def test_the_page_names_every_file_of_values() -> None:
    text = PAGE.read_text()
    assert [name for name in FILES if f"{name}-values.yaml" not in text and name != "everything"] == []


def test_every_value_that_the_page_names_is_in_the_reference() -> None:
    reference = (ROOT / "docs/deploy/values.md").read_text()
    named = set(re.findall(r"`([a-z][A-Za-z]*(?:\.[A-Za-z]+)+)(?:: [^`]*)?`", PAGE.read_text()))
    assert len(named) > 10
    unknown = [name for name in sorted(named) if f"`{name}" not in reference and not name.endswith(".yaml")]
    assert unknown == ["images.NAME.digest"]
