"""Draws small line charts in one SVG, without a plotting library: the trainer's environment has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

_COLOURS: Final = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")
_COLUMNS, _WIDTH, _HEIGHT = 2, 420, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 14, 30, 44
_DOT_UP_TO: Final = 40
"""Longer lines are drawn without dots."""


@dataclass(frozen=True, slots=True)
class Line:
    """A label and its points: step and value."""

    label: str
    points: Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart: a title and its lines, none when the run does not measure them."""

    title: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps steps and values of a panel to its pixels."""

    first: float
    last: float
    low: float
    high: float

    @classmethod
    def of(cls, lines: Sequence[Line]) -> _Scale:
        steps = [step for line in lines for step, _ in line.points]
        values = [value for line in lines for _, value in line.points]
        low, high = min(0.0, *values), max(values)
        return cls(min(steps), max(steps), low, high if high > low else low + 1.0)

    def x(self, step: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (step - self.first) / max(1.0, self.last - self.first)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value - self.low) / (self.high - self.low)


def svg(panels: Sequence[Panel]) -> str:
    """Return the picture."""
    rows = -(-len(panels) // _COLUMNS)
    size = f'width="{_COLUMNS * _WIDTH}" height="{rows * _HEIGHT}"'
    style = 'font-family="sans-serif" font-size="11"'
    drawn = [
        f'<g transform="translate({number % _COLUMNS * _WIDTH} {number // _COLUMNS * _HEIGHT})">{_drawn(panel)}</g>'
        for number, panel in enumerate(panels)
    ]
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', ground, *drawn, "</svg>\n"])


def _drawn(panel: Panel) -> str:
    title = _text(_LEFT, 18, panel.title, 'font-weight="bold"')
    lines = [line for line in panel.lines if line.points]
    if not lines:
        return title + _text(_LEFT, _HEIGHT // 2, "not measured by this run", 'fill="#777"')
    scale = _Scale.of(lines)
    drawn = [_curve(line, scale, _COLOURS[number % len(_COLOURS)]) for number, line in enumerate(lines)]
    return "".join([title, _axes(scale), *drawn, _legend(lines)])


def _axes(scale: _Scale) -> str:
    left, right, low, high = _LEFT, _WIDTH - _RIGHT, scale.y(scale.low), scale.y(scale.high)
    frame = f'<path d="M{left} {high}V{low}H{right}" fill="none" stroke="#999"/>'
    values = [
        _text(left - 4, y + 4, f"{value:.3g}", 'text-anchor="end"')
        for value, y in ((scale.low, low), (scale.high, high))
    ]
    steps = [
        _text(scale.x(step), low + 14, f"{step:g}", 'text-anchor="middle"')
        for step in sorted({scale.first, scale.last})
    ]
    return "".join([frame, *values, *steps])


def _curve(line: Line, scale: _Scale, colour: str) -> str:
    places = [(round(scale.x(step), 1), round(scale.y(value), 1)) for step, value in line.points]
    path = " ".join(f"{x},{y}" for x, y in places)
    dots = [f'<circle cx="{x}" cy="{y}" r="2" fill="{colour}"/>' for x, y in places if len(places) <= _DOT_UP_TO]
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>' + "".join(dots)


def _legend(lines: Sequence[Line]) -> str:
    """Name the lines below the chart, each with its newest value."""
    room = (_WIDTH - _LEFT - _RIGHT) / len(lines)
    return "".join(
        _text(
            _LEFT + number * room,
            _HEIGHT - 10,
            f"{line.label} {line.points[-1][1]:.3g}",
            f'fill="{_COLOURS[number % len(_COLOURS)]}"',
        )
        for number, line in enumerate(lines)
    )


def _text(x: float, y: float, text: str, more: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" {more}>{escape(text)}</text>'
