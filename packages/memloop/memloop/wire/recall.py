"""The parts of a search's answer that a recall reads."""

from datetime import datetime

from pydantic import ConfigDict

from memloop.wire.base import FirstFault
from memloop.wire.memory import NamedTime, PendingTurn


class _Part(FirstFault):
    """A part of the store's answer: all other fields are left unread."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)


class RecalledItem(_Part):
    """The fields of a found memory that a prompt shows."""

    id: str
    memory: str
    valid_from: datetime
    times: tuple[NamedTime, ...] = ()


class RecalledHit(_Part):
    """A hit without its score."""

    item: RecalledItem


class RecallResult(_Part):
    """A ``SearchResult`` of which a recall reads so much. To read all of ten hits takes four times as long."""

    results: tuple[RecalledHit, ...]
    pending: tuple[PendingTurn, ...] = ()
    pending_complete: bool = True
    degraded: bool = False
