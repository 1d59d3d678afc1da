"""The parts of a dashboard, and their translation to Grafana's JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from grafana_foundation_sdk.builders import common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as grafana
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import GraphThresholdsStyleMode, LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableOption,
    VariableRefresh,
)

from deploy.observability.expressions import confined

_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_WIDTH, _CHART_HEIGHT, _NUMBER_HEIGHT = 24, 8, 4
_RED, _GREEN = "red", "green"
_SCOPE = 'namespace=~"$namespace"'
"""In each selector: the releases that the reader of a dashboard has chosen. Without namespaces all series fit."""


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression and the name of its series in the legend."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over time. ``unit`` is one of Grafana's; ``limit`` draws a line where an alert begins.

    ``signed`` values may lie below zero.
    """

    title: str
    unit: str
    queries: tuple[Query, ...]
    about: str = ""
    limit: float | None = None
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """The latest value, red from ``bad`` on."""

    title: str
    unit: str
    expr: str
    bad: float
    about: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels beside one another under a title."""

    title: str
    panels: tuple[Chart | Number, ...]
    across: int = 3


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard; ``name`` is its file's and part of its uid."""

    name: str
    title: str
    about: str
    rows: Sequence[Row]


def rate(metric: str, by: str = "", where: str = "") -> str:
    """Per second, over what Grafana shows as one point, summed over processes; ``by`` keeps labels."""
    kept = f" by ({by})" if by else ""
    return f"sum{kept} (rate({metric}{{{where}}}[$__rate_interval]))"


def quantile(share: float, metric: str, by: str = "", where: str = "") -> str:
    """A quantile of a histogram over processes."""
    kept = f"{by}, le" if by else "le"
    return f"histogram_quantile({share}, {rate(f'{metric}_bucket', kept, where)})"


def quantiles(metric: str, where: str = "") -> tuple[Query, ...]:
    """The median, and the slow end."""
    return tuple(Query(quantile(share, metric, where=where), f"p{share * 100:g}") for share in (0.5, 0.95, 0.99))


def to_json(board: Board) -> str:
    """Grafana's JSON."""
    built = (
        grafana.Dashboard(board.title)
        .uid(f"memloop-{board.name}")
        .description(board.about)
        .tags(["memloop"])
        .time("now-6h", "now")
        .refresh("30s")
        .timezone("browser")
        .editable()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(grafana.DashboardLink("Memloop").type("dashboards").tags(["memloop"]).as_dropdown(True).keep_time(True))
        .with_variable(grafana.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_namespaces())
    )
    ids = count(1)
    for row in board.rows:
        built = built.with_row(grafana.Row(row.title).id(next(ids)))
        for panel in row.panels:
            built = built.with_panel(_panel(panel, _WIDTH // row.across).id(next(ids)))
    return json.dumps(built.build(), cls=JSONEncoder, sort_keys=True, indent=1) + "\n"


def _namespaces() -> grafana.QueryVariable:
    return (
        grafana.QueryVariable("namespace")
        .label("Namespace")
        .datasource(_SOURCE)
        .query("label_values(memloop_build_info, namespace)")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(selected=True, text="All", value="$__all"))
    )


def _panel(panel: Chart | Number, width: int) -> timeseries.Panel | stat.Panel:
    return _chart(panel, width) if isinstance(panel, Chart) else _number(panel, width)


def _chart(chart: Chart, width: int) -> timeseries.Panel:
    legend = (
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    built = (
        timeseries.Panel()
        .title(chart.title)
        .description(chart.about)
        .datasource(_SOURCE)
        .unit(chart.unit)
        .fill_opacity(8)
        .legend(legend)
        .span(width)
        .height(_CHART_HEIGHT)
    )
    if not chart.signed:
        built = built.min(0)
    if chart.limit is not None:
        built = built.thresholds(_thresholds(chart.limit)).thresholds_style(
            common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED)
        )
    for number, query in enumerate(chart.queries):
        built = built.with_target(_target(query.expr, number).legend_format(query.legend or chart.title))
    return built


def _number(number: Number, width: int) -> stat.Panel:
    return (
        stat.Panel()
        .title(number.title)
        .description(number.about)
        .datasource(_SOURCE)
        .unit(number.unit)
        .thresholds(_thresholds(number.bad))
        .span(width)
        .height(_NUMBER_HEIGHT)
        .with_target(_target(number.expr, 0).instant())
    )


def _target(expr: str, number: int) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(confined(expr, _SCOPE)).ref_id(chr(ord("A") + number)).datasource(_SOURCE)


def _thresholds(at: float) -> grafana.ThresholdsConfig:
    steps = [Threshold(value=None, color=_GREEN), Threshold(value=at, color=_RED)]
    return grafana.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
