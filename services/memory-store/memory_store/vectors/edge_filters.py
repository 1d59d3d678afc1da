"""The store's conditions as Qdrant Edge's classes."""

from datetime import datetime

import qdrant_edge as edge

from memory_store.vectors import filters as f


def to_filter(condition: f.Condition) -> edge.Filter:
    """A filter that holds exactly when the condition holds."""
    clauses = f.Clauses.of(condition)
    return edge.Filter(
        must=[_translate(one) for one in clauses.must], must_not=[_translate(one) for one in clauses.must_not]
    )


def _translate(
    condition: f.Condition,
) -> edge.Filter | edge.HasIdCondition | edge.IsEmptyCondition | edge.FieldCondition:
    match condition:
        case f.AllOf() | f.Not():
            return to_filter(condition)
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
