"""The store's conditions as Qdrant Edge's classes."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, TypeGuard

import qdrant_edge as edge

from memory_store.vectors import filters as f

_KEPT: Final = 256


def to_filter(condition: f.Condition) -> edge.Filter:
    """A filter that holds exactly when the condition holds.

    Conjunctions of plain conditions are kept translated: the queries of a search share namespace and view.
    """
    if not isinstance(condition, f.AllOf):
        return _translated(condition)
    if _is_plain(condition):
        return _kept(condition)
    kept = [_kept(one) for one in condition.conditions if _is_plain(one)]
    return _translated(f.AllOf(tuple(one for one in condition.conditions if not _is_plain(one))), kept)


def _is_plain(condition: f.Condition) -> TypeGuard[f.AllOf]:
    """Whether it is a conjunction without lists, which may be long."""
    return isinstance(condition, f.AllOf) and all(
        isinstance(one, f.Equals | f.TimeRange | f.Missing)
        or (isinstance(one, f.Not) and isinstance(one.condition, f.Equals | f.TimeRange))
        or _is_plain(one)
        for one in condition.conditions
    )


@lru_cache(maxsize=_KEPT)
def _kept(condition: f.AllOf) -> edge.Filter:
    return _translated(condition)


def _translated(condition: f.Condition, also: Sequence[edge.Filter] = ()) -> edge.Filter:
    clauses = f.Clauses.of(condition)
    return edge.Filter(
        must=[*also, *(_translate(one) for one in clauses.must)],
        must_not=[_translate(one) for one in clauses.must_not],
    )


def _translate(
    condition: f.Condition,
) -> edge.Filter | edge.HasIdCondition | edge.IsEmptyCondition | edge.FieldCondition:
    match condition:
        case f.AllOf() | f.Not():
            return _translated(condition)
        case f.AnyOf(conditions):
            return edge.Filter(should=[_translate(one) for one in conditions])
        case f.Ids(ids):
            return edge.HasIdCondition(set(ids))
        case f.Missing(field):
            return edge.IsEmptyCondition(field)
        case _:
            return _on_field(condition)


def _on_field(
    condition: f.Equals | f.OneOf | f.Contains | f.NumberRange | f.TimeRange,
) -> edge.FieldCondition:
    match condition:
        case f.Equals(field, value):
            return edge.FieldCondition(field, match=edge.MatchValue(value))
        case f.OneOf(field, values):
            return edge.FieldCondition(field, match=edge.MatchAny(list(values)))
        case f.Contains(field, text):
            return edge.FieldCondition(field, match=edge.MatchSubstring(text))
        case f.NumberRange(field, gt, gte, lt, lte):
            return edge.FieldCondition(field, range=edge.RangeFloat(gt=gt, gte=gte, lt=lt, lte=lte))
        case f.TimeRange(field, gt, gte, lt, lte):
            times = edge.RangeDateTime(gt=_iso(gt), gte=_iso(gte), lt=_iso(lt), lte=_iso(lte))
            return edge.FieldCondition(field, range=times)


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
