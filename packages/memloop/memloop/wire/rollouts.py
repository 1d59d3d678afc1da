"""Rollouts: a candidate takes a share of a model's requests, and both models' engine calls are counted."""

from typing import Final, Literal

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.lists import Listed

CALL_BOUNDS_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""The upper bounds of the classes in which the duration of calls is counted; the last class has none."""


class RolloutChange(Wire):
    """``PUT /v1/admin/rollouts``: from now on this share (0 to 1) of the model's requests goes to the candidate.

    Users and reads that a smaller share sent to the candidate stay there.
    """

    model: str = Field(min_length=1, max_length=128)
    candidate: str = Field(min_length=1, max_length=128)
    share: float = Field(ge=0, le=1)


class TargetCalls(Wire):
    """The engine calls of one model since the rollout began.

    ``failed`` are those that the engine lost or answered with a status of 500 or more. ``durations`` counts the others
    by the classes of ``CALL_BOUNDS_S``, in seconds.
    """

    model: str
    calls: int
    failed: int
    durations: tuple[int, ...]


class Rollout(Wire):
    """A rollout, with the calls of the model itself (``incumbent``) and of its candidate. ``created`` in seconds."""

    id: str
    object: Literal["rollout"] = "rollout"
    model: str
    candidate: str
    share: float
    created: int
    incumbent_calls: TargetCalls
    candidate_calls: TargetCalls


class RolloutPage(Listed[Rollout]):
    """``GET /v1/admin/rollouts``."""


class RolloutEnded(Wire):
    """``DELETE /v1/admin/rollouts``."""

    model: str
    deleted: bool
