"""Compares a JSON answer with the one that a page shows."""

from typing import cast

_REST = "…"
"""As a key or a value in a page: more of them, of any kind."""


def missing(shown: object, printed: object, place: str = "$") -> list[str]:
    """The places where the answer has not what the page shows: fields by name, values by kind, lists by their items."""
    if shown == _REST or shown is None:
        return []
    if isinstance(shown, dict):
        return _missing_fields(cast("dict[str, object]", shown), printed, place)
    if isinstance(shown, list):
        return _missing_items(cast("list[object]", shown), printed, place)
    return [] if _kind(shown) is _kind(printed) else [f"{place} is {printed!r}"]


def _missing_fields(shown: dict[str, object], printed: object, place: str) -> list[str]:
    if not isinstance(printed, dict):
        return [f"{place} is {printed!r}"]
    found = cast("dict[str, object]", printed)
    faults: list[str] = []
    for name, value in shown.items():
        if name in found:
            faults += missing(value, found[name], f"{place}.{name}")
        elif name != _REST:
            faults.append(f"{place}.{name} is not there")
    return faults


def _missing_items(shown: list[object], printed: object, place: str) -> list[str]:
    if not isinstance(printed, list):
        return [f"{place} is {printed!r}"]
    items = cast("list[object]", printed)
    return [
        f"{place} has no item like {one!r}: {items!r}" for one in shown if all(missing(one, item) for item in items)
    ]


def _kind(value: object) -> type:
    return float if type(value) is int else type(value)
