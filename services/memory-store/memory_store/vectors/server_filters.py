"""The store's conditions as qdrant-client's models."""

from qdrant_client import models

from memory_store.vectors import filters as f


def to_filter(condition: f.Condition) -> models.Filter:
    """A filter that holds exactly when the condition holds."""
    clauses = f.Clauses.of(condition)
    return models.Filter(
        must=[_translate(one) for one in clauses.must], must_not=[_translate(one) for one in clauses.must_not]
    )


def _translate(condition: f.Condition) -> models.Condition:
    match condition:
        case f.AllOf() | f.Not():
            return to_filter(condition)
        case f.AnyOf(conditions):
            return models.Filter(should=[_translate(one) for one in conditions])
        case f.Ids(ids):
            return models.HasIdCondition(has_id=list(ids))
        case f.Missing(field):
            return models.IsEmptyCondition(is_empty=models.PayloadField(key=field))
        case _:
            return _on_field(condition)


def _on_field(
    condition: f.Equals | f.OneOf | f.Contains | f.NumberRange | f.TimeRange,
) -> models.FieldCondition:
    match condition:
        case f.Equals(field, value):
            return models.FieldCondition(key=field, match=models.MatchValue(value=value))
        case f.OneOf(field, values):
            return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))
        case f.Contains(field, text):
            return models.FieldCondition(key=field, match=models.MatchSubstring(substring=text))
        case f.NumberRange(field, gt, gte, lt, lte):
            return models.FieldCondition(key=field, range=models.Range(gt=gt, gte=gte, lt=lt, lte=lte))
        case f.TimeRange(field, gt, gte, lt, lte):
            return models.FieldCondition(key=field, range=models.DatetimeRange(gt=gt, gte=gte, lt=lt, lte=lte))
